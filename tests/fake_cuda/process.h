// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "device_memory.h"
#include "gate.h"
#include "machine.h"

/// What one process has of the fake driver.
namespace gflow::cuda::abi {

struct ContextOf {
  std::size_t device = 0;
};
struct StreamOf {
  std::size_t device = 0;
  fake_cuda::Work place = 0;  ///< of the last that was put into it
  Graph captures = nullptr;   ///< what is put into it goes there instead
  int capture_mode = 0;
};
struct EventOf {
  std::size_t device = 0;
  fake_cuda::Work place = 0;  ///< of what it was recorded after
  std::uint64_t done_at = 0;  ///< when it was first seen to be done; 0: not yet
};
struct GraphOf {
  fake_cuda::Work length = 0;
  bool is_valid = true;
};
struct GraphExecOf {
  fake_cuda::Work length = 0;
};
struct MemPoolOf {
  std::size_t device = 0;
  std::uint64_t reserved = 0;
  std::uint64_t used = 0;
  std::uint64_t threshold = 0;
  struct Freed {
    std::uint64_t bytes;
    fake_cuda::Work place;  ///< where the stream frees it
    Stream stream;
  };
  std::list<Freed> freed;
};
struct FunctionOf {};
struct ModuleOf {
  FunctionOf function;
};

}  // namespace gflow::cuda::abi

namespace fake_cuda {

struct Block {
  std::size_t device = 0;
  std::uint64_t bytes = 0;
  abi::Context context = nullptr;
  bool is_shared = false;  ///< with the host or another process
};
struct PoolBlock {
  abi::MemPool pool = nullptr;
  std::uint64_t bytes = 0;
};

/// Everything under one lock, but waiting.
struct Process {
  std::recursive_mutex lock;
  std::set<abi::Context> contexts;
  struct Primary {
    abi::Context context = nullptr;
    int retained = 0;
  };
  std::array<Primary, kMaxDevices> primary{};
  std::array<bool, kMaxDevices> has_context_memory{};
  std::array<abi::StreamOf, kMaxDevices> default_streams{};
  std::set<abi::Stream> streams;
  std::uint64_t next_address = kFirstAddress;
  std::map<abi::DevicePtr, Block> blocks;  ///< arrays too, by their handle
  std::map<abi::DevicePtr, PoolBlock> pool_blocks;
  std::set<abi::MemPool> pools;
  std::array<abi::MemPool, kMaxDevices> default_pools{};
  std::array<abi::MemPool, kMaxDevices> current_pools{};

  static Process& get();
  abi::DevicePtr new_address(std::uint64_t bytes);
};

using Guard = std::lock_guard<std::recursive_mutex>;

/// The machine after cuInit(), else null.
[[nodiscard]] Machine* machine();
/// The context of the calling thread; null if it has none that lives.
[[nodiscard]] abi::Context current();
/// The stream a handle means: null is the device's own.
[[nodiscard]] abi::Stream stream_of(abi::Stream stream);
/// Work into a stream, or into what it captures.
[[nodiscard]] abi::Result put(abi::Stream stream, Work length);
/// Whether a stream of the process captures, and whether the calling thread may ask then what is
/// done; who does without is answered what this returns, and the captures are lost.
[[nodiscard]] bool is_capturing();
[[nodiscard]] bool may_ask();
abi::Result end_captures();
/// What pools have free after a stream was waited for is given back.
void release_free_pools();
[[nodiscard]] abi::MemPool default_pool(std::size_t device);
/// Has a thread do what other processes ask of this one.
void start_serving();

}  // namespace fake_cuda
