// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cuda/abi.h"
#include "gpu.h"
#include "requests.h"

/// The machine of the fake driver: devices from the file in $GFLOW_FAKE_CUDA, what processes have
/// of them in another beside it, with ".state" behind its name.
///
///     driver 12090                        what cuDriverGetVersion says
///     context 300                         MiB the first context of a process takes of a device
///     slice 2000                          microseconds of a turn, where processes have work at
///     once checkpoint spoils                   cuCheckpointProcessCheckpoint leaves processes
///     failed device GPU-UUID 81920 NVIDIA H100   UUID, MiB, name
namespace fake_cuda {

namespace abi = gflow::cuda::abi;

constexpr std::size_t kMaxDevices = 16;
constexpr std::size_t kMaxProcesses = 512;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

struct DeviceFacts {
  std::string uuid;
  std::uint64_t bytes = 0;
  std::string name;
};

/// What is true of the devices, whoever asks. Only under Machine::Locked; of the GPUs,
/// Machine::Playing.
struct Shared {
  struct Process {
    std::int32_t pid = 0;
    std::uint64_t start_time = 0;
    std::array<std::uint64_t, kMaxDevices> bytes{};
    Requests requests;
  };
  std::array<std::uint64_t, kMaxDevices> peak{};
  std::array<Process, kMaxProcesses> processes{};
  std::array<Gpu, kMaxDevices> gpus{};
  std::uint64_t queues_swept_at = 0;
  std::uint64_t met_until = 0;  ///< 0: there are no meetings
  std::array<std::uint32_t, 16> last_rounds{};
};

class Machine {
 public:
  /// Null if the file is missing or wrong, which is said on stderr.
  static Machine* get();

  int driver_version = 12090;
  std::uint64_t context_bytes = 0;
  std::uint64_t slice = 2'000'000;
  bool spoils_checkpoints = false;
  std::vector<DeviceFacts> devices;

  /// The GPU that this process has as its device of this number: another one since it was restored
  /// there. What follows is of the device of a process, where it is not of all processes.
  [[nodiscard]] std::size_t gpu_of(std::size_t device) const { return gpus_[device]; }
  /// All that it launched has to be done.
  void move(std::size_t device, std::size_t gpu);
  /// The GPU of this UUID.
  [[nodiscard]] std::optional<std::size_t> find(const abi::Uuid& uuid) const;

  /// Of all processes: those that died have given theirs back.
  [[nodiscard]] bool take(std::size_t device, std::uint64_t bytes);
  void give_back(std::size_t device, std::uint64_t bytes);
  [[nodiscard]] std::uint64_t has(std::size_t device);  ///< this process
  // Of all processes, and by GPU.
  [[nodiscard]] std::uint64_t used(std::size_t gpu);
  [[nodiscard]] std::uint64_t peak(std::size_t gpu);
  [[nodiscard]] std::map<int, std::uint64_t> processes(std::size_t gpu);

  /// Puts work behind what this process has given the device to do: its place, when it will be
  /// done.
  [[nodiscard]] Work add(std::size_t device, Work length);
  /// The same of a kernel that ends so long after the others of its circle have begun theirs.
  [[nodiscard]] Work add_meeting(std::size_t device, Meeting meeting, Work length);
  /// The last round of a circle, as the first who asks says; the same to all.
  [[nodiscard]] std::uint32_t last_round(std::uint32_t circle, std::uint32_t proposed);
  /// For how long the device has worked for this process.
  [[nodiscard]] Work worked_for_own(std::size_t device);
  /// As much as the device has done for this process.
  [[nodiscard]] Work done(std::size_t device);
  [[nodiscard]] bool has_done(std::size_t device, Work place) { return done(device) >= place; }
  void wait_for(std::size_t device, Work place);
  /// As much as it had done for all when somebody last asked what it has done for him: who asks
  /// this may have another clock than they.
  [[nodiscard]] Work worked(std::size_t gpu);
  /// For how long it worked while processes of several accounts had work for it.
  [[nodiscard]] Work contested(std::size_t gpu);
  /// The kernel that waits to be told ends.
  void tell(std::size_t device);

  /// The calling thread does from now on what is asked of this process.
  [[nodiscard]] Requests& begin_serving();
  /// Until a thread of this process does so.
  void await_serving();
  /// Of another process as it is now; empty if there is none of that pid that serves.
  [[nodiscard]] std::optional<Requests> requests_of(int pid);
  /// Has another process do it: the number of the request, once those before are done. Empty if
  /// there is none.
  [[nodiscard]] std::optional<std::uint32_t> put(int pid, const Request& request);
  /// Its result; empty if the process ends before that.
  [[nodiscard]] std::optional<std::int32_t> await(int pid, std::uint32_t number);

 private:
  class Locked;
  class Playing;
  explicit Machine(const std::string& path);
  [[nodiscard]] bool read(const std::string& path);
  Shared::Process& own();
  Shared::Process* serving(int pid);
  std::uint64_t sum(std::size_t device);

  std::array<std::size_t, kMaxDevices> gpus_{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  std::mutex threads_;
  std::mutex playing_;
  int file_ = -1;
  Shared* shared_ = nullptr;
};

/// "GPU-11111111-2222-3333-4444-555555555555" as programs have it.
[[nodiscard]] abi::Uuid uuid_in(const std::string& text);

[[nodiscard]] std::uint64_t now();  ///< nanoseconds of CLOCK_MONOTONIC
void sleep_until(std::uint64_t time);

}  // namespace fake_cuda

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))
