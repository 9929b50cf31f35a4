// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>

#include "base/time.h"

namespace gflow::kube {

/// How the scheduler does: its threads say it, and whoever asks is told without waiting for them.
class Health {
 public:
  /// The longest turn there is takes seconds: the first one, over tens of thousands of pods.
  /// Whoever restarts one that is at it has it begin from the start, so `longest_turn` is far
  /// beyond.
  explicit Health(std::chrono::milliseconds longest_turn = std::chrono::minutes(1))
      : longest_turn_(longest_turn) {}

  /// It does its part: it decides, or stands by for the Lease of the one that does.
  void ready() { not_ready(""); }
  void not_ready(std::string why);
  /// Why it is not; "" if it is.
  [[nodiscard]] std::string unready() const;

  /// Has the loop wait for something to do. All between two of these is one turn.
  void wait(const std::function<void()>& until_there_is);
  /// What a turn takes that will not end by itself; "" while all is well.
  [[nodiscard]] std::string stuck(MonoTime now) const;

 private:
  static constexpr MonoTime kWaits = MonoTime::max();

  const std::chrono::milliseconds longest_turn_;
  mutable std::mutex mutex_;
  std::string unready_ = "it starts";
  std::atomic<MonoTime> turn_began_ = kWaits;
};

}  // namespace gflow::kube
