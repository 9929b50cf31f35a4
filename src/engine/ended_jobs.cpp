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

void EndedJobs::count(const Job& job) {
  const std::uint32_t uid = job.spec.user.uid;
  User& user = users_[uid];
  by_count_.erase({user.count(), uid});
  (job.attempts == 0 ? user.never_ran : user.ran).insert(age_of(job));
  by_count_.emplace(user.count(), uid);
  free_.insert(age_of(job));
}

void EndedJobs::discount(const Job& job) {
  const std::uint32_t uid = job.spec.user.uid;
  const auto user = users_.find(uid);
  by_count_.erase({user->second.count(), uid});
  (job.attempts == 0 ? user->second.never_ran : user->second.ran).erase(age_of(job));
  if (user->second.count() == 0) {
    users_.erase(user);
  } else {
    by_count_.emplace(user->second.count(), uid);
  }
  free_.erase(age_of(job));
}

const EndedJobs::Age& EndedJobs::User::first() const {
  return never_ran.empty() ? *ran.begin() : *never_ran.begin();
}

std::optional<JobId> EndedJobs::next(std::chrono::milliseconds lived,
                                     std::chrono::milliseconds keep,
                                     std::size_t most) const {
  if (!free_.empty() && free_.begin()->first < lived - keep) return free_.begin()->second;
  if (free_.size() <= most) return std::nullopt;
  const auto& [ended, id] = users_.at(by_count_.rbegin()->second).first();
  const bool crowded = free_.size() > 2 * most;
  return ended < (crowded ? lived : lived - kLeastKept) ? std::optional(id) : std::nullopt;
}

}  // namespace gflow::engine
