// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "core/job.h"

namespace gflow::server {

/// Those who wait for news of the state. Remembers the latest changes, so that one that came
/// between a listing and the wait for the next is not missed. Runs on the loop's thread.
class ChangeFeed {
 public:
  explicit ChangeFeed(boost::asio::io_context& io) : io_(io) {}

  /// The state is at this revision now, and these jobs changed on the way.
  void record(std::uint64_t revision, const std::set<JobId>& jobs);
  /// Calls back once anything (or the job, if given) has changed after `revision`, or after `most`;
  /// not any more once what is returned is let go of, which may outlive the feed.
  [[nodiscard]] std::shared_ptr<void> wait(std::uint64_t revision,
                                           std::optional<JobId> job,
                                           std::chrono::milliseconds most,
                                           std::function<void()> then);

  /// How many wait.
  [[nodiscard]] std::size_t waiting() const { return waiters_->size(); }

 private:
  struct Waiter {
    std::optional<JobId> job;
    std::function<void()> then;
    boost::asio::steady_timer timer;
  };
  using Waiters = std::map<std::uint64_t, Waiter>;
  struct Change {
    std::uint64_t revision;
    JobId job;
  };
  [[nodiscard]] bool changed_since(std::uint64_t revision, std::optional<JobId> job) const;
  void wake(Waiters::iterator waiter);

  static constexpr std::size_t kRemembered = 16384;

  boost::asio::io_context& io_;
  std::uint64_t revision_ = 0;
  std::uint64_t complete_since_ = 0;  ///< all changes of jobs after this revision are remembered
  std::deque<Change> recent_;
  std::shared_ptr<Waiters> waiters_ =
      std::make_shared<Waiters>();  // waits look whether it is there
  std::uint64_t next_ = 0;
};

}  // namespace gflow::server
