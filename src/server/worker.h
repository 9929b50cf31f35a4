// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "server/fair_queue.h"

namespace gflow::server {

/// A thread for what takes long and touches nothing of the daemon: to read a large body, to write a
/// large answer. Users take turns.
class Worker {
 public:
  Worker();
  /// Drops what has not begun and waits for what has.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// `work` runs on the thread. How others learn that it is done is its own matter.
  void run(std::uint32_t uid, std::function<void()> work);
  /// The rest of what was begun: before all else of this user.
  void go_on(std::uint32_t uid, std::function<void()> work);

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  FairQueue queue_;  // guarded by mutex_
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace gflow::server
