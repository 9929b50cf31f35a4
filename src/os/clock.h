// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "base/time.h"

namespace gflow::os {

/// Both clocks, read one after the other.
[[nodiscard]] Now now();
/// What local time is ahead of UTC at `time`.
[[nodiscard]] std::chrono::seconds utc_offset(WallTime time);
/// Identity of this boot (/proc/sys/kernel/random/boot_id), "unknown" where there is none. An error
/// must not be taken for another boot: all that runs would be judged by it.
[[nodiscard]] Result<std::string> boot_id();

}  // namespace gflow::os
