// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shim/fd.h"

namespace gflow::shim {

/// A pidfd of the process with this pid that was started then (ProcessFacts::start_time), as its
/// pid may have gone to another one since it was seen. None if it is gone.
[[nodiscard]] Fd hold_process(std::int32_t pid, std::uint64_t start_time);

}  // namespace gflow::shim
