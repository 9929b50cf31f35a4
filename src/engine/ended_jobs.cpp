// SPDX-License-Identifier: Apache-2.0
#include "engine/ended_jobs.h"

namespace gflow::engine {
namespace {

EndedJobs::Age age_of(const Job& job) { return {std::get<Ended>(job.state).lived, job.id}; }

}  // namespace

void EndedJobs::add(const Job& job, bool pinned) {
  all_.insert(age_of(job));
  if (pinned) {
    pinned_.insert(job.id);
  } else {
    count(job);
  }
}

void EndedJobs::remove(const Job& job) {
  all_.erase(age_of(job));
  if (pinned_.erase(job.id) == 0) discount(job);
}

void EndedJobs::set_pinned(const Job& job, bool pinned) {
  if (pinned && pinned_.insert(job.id).second) discount(job);
  if (!pinned && pinned_.erase(job.id) > 0) count(job);
}

void EndedJobs::rank(std::uint32_t uid, const User& user) {
  by_count_.emplace(user.count(), uid);
  by_bytes_.emplace(user.bytes, uid);
}

void EndedJobs::unrank(std::uint32_t uid, const User& user) {
  by_count_.erase({user.count(), uid});
  by_bytes_.erase({user.bytes, uid});
}

void EndedJobs::count(const Job& job) {
  const std::uint32_t uid = job.spec.user.uid;
  User& user = users_[uid];
  unrank(uid, user);
  (job.attempts == 0 ? user.never_ran : user.ran).insert(age_of(job));
  user.bytes += static_cast<std::int64_t>(bytes_of(job.spec));
  rank(uid, user);
  free_.insert(age_of(job));
}

void EndedJobs::discount(const Job& job) {
  const std::uint32_t uid = job.spec.user.uid;
  const auto at = users_.find(uid);
  User& user = at->second;
  unrank(uid, user);
  (job.attempts == 0 ? user.never_ran : user.ran).erase(age_of(job));
  user.bytes -= static_cast<std::int64_t>(bytes_of(job.spec));
  if (user.count() == 0) {
    users_.erase(at);
  } else {
    rank(uid, user);
  }
  free_.erase(age_of(job));
}

const EndedJobs::Age& EndedJobs::User::first() const {
  return never_ran.empty() ? *ran.begin() : *never_ran.begin();
}

std::optional<JobId> EndedJobs::next(std::chrono::milliseconds lived, const Limits& limits) const {
  if (free_.empty()) return std::nullopt;
  if (free_.begin()->first < lived - limits.keep) return free_.begin()->second;
  const auto before = [](const Age& age, std::chrono::milliseconds time) {
    return age.first < time ? std::optional(age.second) : std::nullopt;
  };
  const auto& [bytes, uid] = *by_bytes_.rbegin();
  if (bytes > limits.user_bytes) {
    if (const auto id = before(users_.at(uid).first(), lived)) return id;
  }
  if (free_.size() <= limits.jobs) return std::nullopt;
  const bool crowded = free_.size() > 2 * limits.jobs;
  const User& most = users_.at(by_count_.rbegin()->second);
  return before(most.first(), crowded ? lived : lived - kLeastKept);
}

}  // namespace gflow::engine
