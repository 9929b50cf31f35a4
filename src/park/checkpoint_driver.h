// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cuda/abi.h"

namespace gflow::park {

/// How a process stands with the CUDA driver.
enum class Standing : std::uint8_t {
  Running,
  Locked,  ///< its calls of the driver wait
  Parked,  ///< locked, and what it had of its GPU is in host memory
  Broken,  ///< the driver lost it: it cannot go on
};

/// Where that is another one.
inline constexpr std::string_view kCannotMove =
    "the NVIDIA driver is older than 580, the first that can move a process to another GPU";

/// From which GPU to which a process goes, by UUID as NVML writes it: "GPU-11111111-...".
struct GpuPair {
  std::string from;
  std::string to;
};

/// The calls of NVIDIA's driver that take what a process has of its GPU to host memory and back
/// (cuCheckpointProcess*, of driver 570 on). The process's own user, or root, may; a thread of the
/// driver in the process does the work, so it must not be stopped. Each call waits for that, some
/// without end. Errors name the process and what the driver said.
class CheckpointDriver {
 public:
  /// Errors: NotFound without a driver, Infeasible if it is older than that.
  [[nodiscard]] static Result<CheckpointDriver> open();
  /// Once, before anything is asked of a process. Takes no memory of a GPU.
  [[nodiscard]] Result<void> initialize() const;

  /// Empty: it does not use the driver, or is gone.
  [[nodiscard]] std::optional<Standing> standing_of(int pid) const;
  /// Waits for what it launched; Timeout, and it runs, if that takes longer than `most`.
  [[nodiscard]] Result<void> lock(int pid, std::chrono::milliseconds most) const;
  /// Infeasible: it has what the driver cannot take away.
  [[nodiscard]] Result<void> checkpoint(int pid) const;
  /// Exhausted: its GPU has no room for it. Damaged: it will never have it back.
  [[nodiscard]] Result<void> restore(int pid) const;
  /// Whether it can be had back on another GPU: from CUDA 13 on, whose driver is 580.
  [[nodiscard]] bool can_move() const;
  /// Of one that was checkpointed on the one GPU, on the other. Infeasible: it was not, or the
  /// driver cannot bring it there, and it is as it was.
  [[nodiscard]] Result<void> restore_onto(int pid, const GpuPair& pair) const;
  [[nodiscard]] Result<void> unlock(int pid) const;

 private:
  CheckpointDriver() = default;
  [[nodiscard]] std::string text_of(cuda::abi::Result result) const;
  [[nodiscard]] Result<void> restored(int pid, cuda::abi::Result result) const;

  cuda::abi::call::cuInit* init_ = nullptr;
  cuda::abi::call::cuGetErrorName* error_name_ = nullptr;
  cuda::abi::call::cuDriverGetVersion* get_version_ = nullptr;
  cuda::abi::call::cuCheckpointProcessGetState* get_state_ = nullptr;
  cuda::abi::call::cuCheckpointProcessLock* lock_ = nullptr;
  cuda::abi::call::cuCheckpointProcessCheckpoint* checkpoint_ = nullptr;
  cuda::abi::call::cuCheckpointProcessRestore* restore_ = nullptr;
  cuda::abi::call::cuCheckpointProcessUnlock* unlock_ = nullptr;
};

}  // namespace gflow::park
