// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gflow::interpose {

/// For how long a device is used while a gate is open, as looks at it tell. Nanoseconds.
struct Usage {
  std::uint64_t looked_at;
  std::uint64_t idle_since = 0;  ///< 0: it is busy
  std::uint64_t used = 0;        ///< and not counted yet
  bool was_idle = false;         ///< so the device has not fallen behind

  /// Time is used while there is work, and while there is none and others wait for it to end.
  void look(std::uint64_t time, bool is_at_work, bool is_wanted) {
    const bool was_busy = idle_since == 0;
    const std::uint64_t passed = time - looked_at;
    if (is_wanted || (was_busy && is_at_work)) {
      used += passed;
    } else if (was_busy || is_at_work) {
      used += passed / 2;
    }
    looked_at = time;
    if (is_at_work) {
      idle_since = 0;
    } else {
      was_idle = true;
      if (was_busy) idle_since = time;
    }
  }
};

}  // namespace gflow::interpose
