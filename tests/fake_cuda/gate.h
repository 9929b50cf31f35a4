// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

/// What stands before the exported functions of a process: each call is counted, and waits while
/// the process is locked (cuCheckpointProcessLock).
namespace fake_cuda {

/// A call of an exported function, from its first line to its return.
class Call {
 public:
  explicit Call(const char* function);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
};

/// How often this process has called an exported function.
[[nodiscard]] int calls_of(const char* function);

/// From here on calls wait. False, and they do not, if those that were under way have not returned
/// until `until`, nanoseconds of CLOCK_MONOTONIC.
[[nodiscard]] bool close_gate(std::optional<std::uint64_t> until);
void open_gate();

}  // namespace fake_cuda
