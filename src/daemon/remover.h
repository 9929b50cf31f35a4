// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

namespace gflow::daemon {

/// A thread that removes what ended jobs left, so that a directory with a million files, or a huge
/// log, keeps nobody waiting. What a daemon that ends leaves of it, the next one sweeps.
class Remover {
 public:
  Remover();
  /// Gives up what is not removed yet.
  ~Remover();
  Remover(const Remover&) = delete;
  Remover& operator=(const Remover&) = delete;

  /// Removes a file, or a directory with all that is in it; follows no link. What cannot be removed
  /// stays.
  void remove(std::string path);
  /// Waits until all that was given is removed: for tests.
  void drain();

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> paths_;  // guarded by mutex_, as busy_
  bool busy_ = false;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace gflow::daemon
