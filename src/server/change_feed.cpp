// SPDX-License-Identifier: Apache-2.0
#include "server/change_feed.h"

#include <algorithm>
#include <boost/asio/post.hpp>

namespace gflow::server {

void ChangeFeed::record(std::uint64_t revision, const std::set<JobId>& jobs) {
  if (revision == revision_ && jobs.empty()) return;
  if (revision_ == 0) complete_since_ = revision;  // what the store had is not told as changes
  revision_ = revision;
  for (const JobId job : jobs) recent_.push_back({revision, job});
  while (recent_.size() > kRemembered) {
    complete_since_ = recent_.front().revision;
    recent_.pop_front();
  }
  for (auto at = waiters_->begin(); at != waiters_->end();) {
    const auto waiter = at++;
    const auto& job = waiter->second.job;
    if (!job || jobs.contains(*job)) wake(waiter);
  }
}

bool ChangeFeed::changed_since(std::uint64_t revision, std::optional<JobId> job) const {
  if (revision >= revision_) return false;
  if (!job || revision < complete_since_) return true;
  return std::ranges::any_of(
      recent_, [&](const Change& c) { return c.revision > revision && c.job == *job; });
}

std::shared_ptr<void> ChangeFeed::wait(std::uint64_t revision,
                                       std::optional<JobId> job,
                                       std::chrono::milliseconds most,
                                       std::function<void()> then) {
  if (changed_since(revision, job)) {
    boost::asio::post(io_, std::move(then));
    return nullptr;
  }
  const std::uint64_t number = next_++;
  const auto waiter =
      waiters_->emplace(number, Waiter{job, std::move(then), boost::asio::steady_timer(io_, most)})
          .first;
  waiter->second.timer.async_wait([this, number](const boost::system::error_code& error) {
    if (error) return;
    if (const auto found = waiters_->find(number); found != waiters_->end()) wake(found);
  });
  const auto let_go = [number, left = std::weak_ptr(waiters_)](void*) {
    if (const auto waiters = left.lock()) waiters->erase(number);
  };
  return {this, let_go};
}

/// Once per waiter: the timer that is cancelled here does not call again.
void ChangeFeed::wake(Waiters::iterator waiter) {
  boost::asio::post(io_, std::move(waiter->second.then));
  waiters_->erase(waiter);
}

}  // namespace gflow::server
