// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "cuda/abi.h"

/// The machine of the fake driver: devices from the file in $GFLOW_FAKE_CUDA, what processes have
/// of them in another beside it, with ".state" behind its name.
///
///     driver 12090                        what cuDriverGetVersion says
///     context 300                         MiB the first context of a process takes of a device
///     device GPU-UUID 81920 NVIDIA H100   UUID, MiB, name
namespace fake_cuda {

namespace abi = gflow::cuda::abi;

constexpr std::size_t kMaxDevices = 8;
constexpr std::size_t kMaxProcesses = 512;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

struct DeviceFacts {
  std::string uuid;
  std::uint64_t bytes = 0;
  std::string name;
};

/// What is true of the devices, whoever asks. Only under Machine::Locked.
struct Shared {
  struct Process {
    std::int32_t pid = 0;
    std::uint64_t start_time = 0;
    std::array<std::uint64_t, kMaxDevices> bytes{};
  };
  std::array<std::uint64_t, kMaxDevices> peak{};
  std::array<std::uint64_t, kMaxDevices> busy_until{};  ///< nanoseconds of CLOCK_MONOTONIC
  std::array<Process, kMaxProcesses> processes{};
};

class Machine {
 public:
  /// Null if the file is missing or wrong, which is said on stderr.
  static Machine* get();

  int driver_version = 12090;
  std::uint64_t context_bytes = 0;
  std::vector<DeviceFacts> devices;

  /// Of all processes: those that died have given theirs back.
  [[nodiscard]] bool take(std::size_t device, std::uint64_t bytes);
  void give_back(std::size_t device, std::uint64_t bytes);
  [[nodiscard]] std::uint64_t used(std::size_t device);
  [[nodiscard]] std::uint64_t peak(std::size_t device);
  [[nodiscard]] std::map<int, std::uint64_t> processes(std::size_t device);
  /// Puts work behind all other work of the device: when it will be done.
  [[nodiscard]] std::uint64_t occupy(std::size_t device, std::uint64_t after, std::uint64_t length);

 private:
  class Locked;
  explicit Machine(const std::string& path);
  [[nodiscard]] bool read(const std::string& path);
  Shared::Process& own();
  std::uint64_t sum(std::size_t device);

  std::mutex threads_;
  int file_ = -1;
  Shared* shared_ = nullptr;
};

/// Counts a call of an exported function by this process; fakeCudaCalls() tells.
void entered(const char* function);

[[nodiscard]] std::uint64_t now();
void sleep_until(std::uint64_t time);

}  // namespace fake_cuda

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))
