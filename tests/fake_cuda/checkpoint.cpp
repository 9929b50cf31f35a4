// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "device_memory.h"
#include "gate.h"
#include "process.h"

// Taking what a process has of its GPU to host memory and back. Another process asks for it; a
// thread of the driver in the process itself does it, so a process that is stopped does not answer.
// What is asked of a process that is locked is not done by its own calls, which wait.
using namespace fake_cuda;  // NOLINT(google-build-using-namespace): the C interface is global

namespace fake_cuda {
namespace {

/// CUDA 13, whose driver is 580, can restore on another GPU.
constexpr int kFirstWithPairs = 13000;

/// What the process had of its device, while it is in host memory.
struct Checkpointed {
  std::size_t device = 0;
  std::uint64_t bytes = 0;
  DeviceContent content;
  bool is_stuck = false;  ///< it could not be given back once
};
Checkpointed& checkpointed() {
  static auto* const kept = new Checkpointed;
  return *kept;
}

/// Until all that was launched is done. Looked at again and again: a GPU wakes nobody.
bool wait_for_work(std::optional<std::uint64_t> until) {
  constexpr std::uint64_t kMillisecond = 1'000'000;
  for (std::size_t device = 0; device < machine()->devices.size(); ++device) {
    if (!Process::get().has_context_memory[device]) continue;
    const Work place = machine()->add(device, 0);
    while (!machine()->has_done(device, place)) {
      if (until && now() >= *until) return false;
      sleep_until(now() + kMillisecond);
    }
  }
  return true;
}

abi::Result lock(const Request& request, std::int32_t& state) {
  constexpr std::uint64_t kMillisecond = 1'000'000;
  if (state != abi::kProcessRunning) return abi::kIllegalState;
  std::optional<std::uint64_t> until;
  if (request.timeout_ms > 0) until = now() + request.timeout_ms * kMillisecond;
  if (!close_gate(until)) return abi::kNotReady;
  if (!wait_for_work(until)) {
    open_gate();
    return abi::kNotReady;
  }
  state = abi::kProcessLocked;
  return abi::kSuccess;
}

/// The only device the process uses; empty if there are several.
std::optional<std::size_t> only_device() {
  std::optional<std::size_t> found;
  for (std::size_t device = 0; device < machine()->devices.size(); ++device) {
    if (!Process::get().has_context_memory[device]) continue;
    if (found) return std::nullopt;
    found = device;
  }
  return found.value_or(0);
}

bool shares_memory() {
  return std::ranges::any_of(Process::get().blocks,
                             [](const auto& block) { return block.second.is_shared; });
}

abi::Result checkpoint(std::int32_t& state) {
  if (state != abi::kProcessLocked) return abi::kIllegalState;
  const Guard guard(Process::get().lock);
  const auto device = only_device();
  if (!device || shares_memory()) return abi::kNotSupported;
  if (machine()->spoils_checkpoints) {
    state = abi::kProcessFailed;
    return abi::kUnknown;
  }
  const std::uint64_t bytes = machine()->has(*device);
  checkpointed() = {
      .device = *device, .bytes = bytes, .content = take_device_content(), .is_stuck = false};
  machine()->give_back(*device, bytes);
  state = abi::kProcessCheckpointed;
  return abi::kSuccess;
}

/// The GPU it is to be restored onto. Pairs have to name the one it was on, and one of the same
/// chip, of which the name and the size stand here.
abi::Result find_gpu(const Request& request, std::size_t was_on, std::size_t& gpu) {
  gpu = was_on;
  if (request.pair_count == 0) return abi::kSuccess;
  for (std::uint32_t at = 0; at < request.pair_count; ++at) {
    const Request::Pair& pair = request.pairs[at];
    if (static_cast<std::size_t>(pair.from) != was_on) continue;
    gpu = static_cast<std::size_t>(pair.to);
    const DeviceFacts& there = machine()->devices[gpu];
    const DeviceFacts& before = machine()->devices[was_on];
    const bool is_alike = there.name == before.name && there.bytes == before.bytes;
    return is_alike ? abi::kSuccess : abi::kNotSupported;
  }
  return abi::kInvalidValue;
}

/// Where there is no room, none of those that follow succeeds, as on drivers 580.
abi::Result restore(const Request& request, std::int32_t& state) {
  if (state != abi::kProcessCheckpointed) return abi::kIllegalState;
  const Guard guard(Process::get().lock);
  Checkpointed& kept = checkpointed();
  if (kept.is_stuck) return abi::kOperatingSystem;
  const std::size_t was_on = machine()->gpu_of(kept.device);
  std::size_t gpu = 0;
  if (const abi::Result found = find_gpu(request, was_on, gpu); found != abi::kSuccess) {
    return found;
  }
  if (gpu != was_on) machine()->move(kept.device, gpu);
  kept.is_stuck = !machine()->take(kept.device, kept.bytes);
  if (kept.is_stuck) return abi::kOutOfMemory;
  for (const auto& [address, bytes] : kept.content) {
    write_device(address, bytes.data(), bytes.size());
  }
  kept = {};
  state = abi::kProcessLocked;
  return abi::kSuccess;
}

abi::Result unlock(std::int32_t& state) {
  if (state != abi::kProcessLocked) return abi::kIllegalState;
  state = abi::kProcessRunning;
  open_gate();
  return abi::kSuccess;
}

abi::Result grant(const Request& request, std::int32_t& state) {
  switch (request.wish) {
    case Wish::Lock:
      return lock(request, state);
    case Wish::Checkpoint:
      return checkpoint(state);
    case Wish::Restore:
      return restore(request, state);
    case Wish::Unlock:
      return unlock(state);
    case Wish::None:
      break;
  }
  return abi::kInvalidValue;
}

void* serve(void*) {
  Requests& requests = machine()->begin_serving();
  while (true) {
    const std::uint32_t done = value_of(requests.answered);
    if (value_of(requests.asked) == done) {
      wait_for_change(requests.asked, done);
      continue;
    }
    const abi::Result result = grant(requests.request, requests.state);
    requests.results[(done + 1) % requests.results.size()] = result;
    change(requests.answered, done + 1);
  }
}

bool is_zero(const void* bytes, std::size_t size) {
  const auto* const all = static_cast<const unsigned char*>(bytes);
  for (std::size_t at = 0; at < size; ++at) {
    if (all[at] != 0) return false;
  }
  return true;
}

/// Whether this is the call in which who asks is to be killed: the so manieth of its own
/// ($GFLOW_FAKE_CUDA_KILLED_AT).
bool is_last_call() {
  static int calls = 0;
  const char* const at = ::getenv("GFLOW_FAKE_CUDA_KILLED_AT");
  return at != nullptr && ++calls == std::atoi(at);
}

/// This process asks another one, which does it if this one is killed, too.
abi::Result ask(int pid, const Request& request) {
  if (machine() == nullptr) return abi::kNotInitialized;
  const auto number = machine()->put(pid, request);
  if (!number) return abi::kInvalidValue;
  if (is_last_call()) (void)::raise(SIGKILL);
  return static_cast<abi::Result>(machine()->await(pid, *number).value_or(abi::kInvalidValue));
}

/// How another one stands.
std::optional<Requests> look_at(int pid) {
  if (is_last_call()) (void)::raise(SIGKILL);
  return machine()->requests_of(pid);
}

}  // namespace

/// The virtual clock takes a thread for one that works until it sleeps by the clock; this one
/// waits for other processes. So programs on that clock cannot be checkpointed.
void start_serving() {
  static pid_t served = 0;  // a child of fork(2) has no other thread
  const Guard guard(Process::get().lock);
  if (::getenv("GFLOW_VIRTUAL_CLOCK") != nullptr || served == ::getpid()) return;
  served = ::getpid();
  pthread_t thread{};
  if (::pthread_create(&thread, nullptr, serve, nullptr) != 0) std::abort();
  (void)::pthread_detach(thread);
  machine()->await_serving();
}

}  // namespace fake_cuda

/// Not of the driver: how much the process is asked to do and has not done, by how many.
FAKE_EXPORT int fakeCudaAsked(int pid) {
  auto its = Machine::get()->requests_of(pid);
  return its ? static_cast<int>(its->asked - its->answered + its->waiting) : 0;
}

extern "C" {

#define FAKE_DECLARE(name) __attribute__((visibility("default"))) abi::call::name name
FAKE_DECLARE(cuCheckpointProcessGetRestoreThreadId);
FAKE_DECLARE(cuCheckpointProcessGetState);
FAKE_DECLARE(cuCheckpointProcessLock);
FAKE_DECLARE(cuCheckpointProcessCheckpoint);
FAKE_DECLARE(cuCheckpointProcessRestore);
FAKE_DECLARE(cuCheckpointProcessUnlock);

abi::Result cuCheckpointProcessGetRestoreThreadId(int pid, int* thread) {
  if (machine() == nullptr) return abi::kNotInitialized;
  const auto its = look_at(pid);
  if (!its) return abi::kInvalidValue;
  *thread = its->thread;
  return abi::kSuccess;
}

abi::Result cuCheckpointProcessGetState(int pid, abi::ProcessState* state) {
  if (machine() == nullptr) return abi::kNotInitialized;
  const auto its = look_at(pid);
  if (!its) return abi::kInvalidValue;
  *state = its->state;
  return abi::kSuccess;
}

abi::Result cuCheckpointProcessLock(int pid, abi::CheckpointLockArgs* args) {
  const std::uint32_t timeout = args == nullptr ? 0 : args->timeout_ms;
  if (args != nullptr && !is_zero(args->reserved1, sizeof args->reserved1)) {
    return abi::kInvalidValue;
  }
  return ask(pid, {.wish = Wish::Lock, .timeout_ms = timeout});
}

abi::Result cuCheckpointProcessCheckpoint(int pid, abi::CheckpointCheckpointArgs* args) {
  if (args != nullptr && !is_zero(args, sizeof *args)) return abi::kInvalidValue;
  return ask(pid, {.wish = Wish::Checkpoint});
}

/// What drivers before 580 had for reserved is to be zero there.
abi::Result cuCheckpointProcessRestore(int pid, abi::CheckpointRestoreArgs* args) {
  Request request{.wish = Wish::Restore};
  if (args == nullptr) return ask(pid, request);
  if (machine() == nullptr) return abi::kNotInitialized;
  const bool has_pairs = args->gpu_pairs != nullptr || args->gpu_pairs_count > 0;
  const bool knows_pairs = machine()->driver_version >= kFirstWithPairs;
  if ((has_pairs && !knows_pairs) || (args->gpu_pairs == nullptr) != (args->gpu_pairs_count == 0) ||
      args->gpu_pairs_count > request.pairs.size() ||
      !is_zero(args->reserved, sizeof args->reserved) || args->reserved1 != 0) {
    return abi::kInvalidValue;
  }
  for (unsigned int at = 0; at < args->gpu_pairs_count; ++at) {
    const auto from = machine()->find(args->gpu_pairs[at].old_uuid);
    const auto to = machine()->find(args->gpu_pairs[at].new_uuid);
    if (!from || !to) return abi::kInvalidValue;
    request.pairs[at] = {static_cast<std::int32_t>(*from), static_cast<std::int32_t>(*to)};
  }
  request.pair_count = args->gpu_pairs_count;
  return ask(pid, request);
}

abi::Result cuCheckpointProcessUnlock(int pid, abi::CheckpointUnlockArgs* args) {
  if (args != nullptr && !is_zero(args, sizeof *args)) return abi::kInvalidValue;
  return ask(pid, {.wish = Wish::Unlock});
}

}  // extern "C"
