// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "base/time.h"

namespace gflow::kube {

/// How the scheduler does: its threads say it, and whoever asks is told without waiting for them.
class Health {
 public:
  /// It does its part: it decides, or stands by for the Lease of the one that does.
  void ready() { not_ready(""); }
  void not_ready(std::string why);
  /// Why it is not; "" if it is.
  [[nodiscard]] std::string unready() const;

  /// Of the loop: between these it does something, else it waits for something to do.
  void turn_begins(MonoTime now) { turn_began_ = now; }
  void turn_ends() { turn_began_ = kWaits; }
  /// What a turn takes that will not end by itself; "" while all is well.
  [[nodiscard]] std::string stuck(MonoTime now) const;

 private:
  static constexpr MonoTime kWaits = MonoTime::max();

  mutable std::mutex mutex_;
  std::string unready_ = "it starts";
  std::atomic<MonoTime> turn_began_ = kWaits;
};

}  // namespace gflow::kube
