// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace gflow::dra {

/// Does something again and again, on a thread of its own, as it may take long.
class Periodic {
 public:
  Periodic(std::chrono::milliseconds pause, std::function<void()> act);
  /// Waits until what is under way is done.
  ~Periodic();
  Periodic(const Periodic&) = delete;
  Periodic& operator=(const Periodic&) = delete;

  /// At once, or as soon as what is under way is done. Any thread.
  void now();

 private:
  void run();

  const std::chrono::milliseconds pause_;
  const std::function<void()> act_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_wanted_ = true;
  bool is_ended_ = false;
  std::thread thread_;  ///< begins last
};

}  // namespace gflow::dra
