// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "process.h"

// Memory in the order of streams. A pool takes 32 MiB or more of its device at once, and gives back
// what is free beyond its threshold when a stream is waited for.
using namespace fake_cuda;  // NOLINT(google-build-using-namespace): the C interface is global

namespace fake_cuda {
namespace {

constexpr std::uint64_t kTaken = 32 * kMiB;

std::uint64_t whole(std::uint64_t bytes) { return (bytes + kTaken - 1) / kTaken * kTaken; }

/// What was freed in a stream is free once the stream has come so far, for that stream at once.
void collect(abi::MemPool pool, abi::Stream stream) {
  if (pool->freed.empty()) return;
  const Work done = machine()->done(pool->device);
  std::erase_if(pool->freed, [&](const abi::MemPoolOf::Freed& freed) {
    if (freed.place > done && freed.stream != stream) return false;
    pool->used -= freed.bytes;
    return true;
  });
}

void shrink(abi::MemPool pool, std::uint64_t keep) {
  const std::uint64_t least = whole(std::max(pool->used, keep));
  if (pool->reserved <= least) return;
  machine()->give_back(pool->device, pool->reserved - least);
  pool->reserved = least;
}

abi::Result allocate(abi::DevicePtr* pointer,
                     std::uint64_t bytes,
                     abi::MemPool pool,
                     abi::Stream stream) {
  if (bytes == 0) return abi::kInvalidValue;
  collect(pool, stream);
  if (pool->reserved - pool->used < bytes) {
    if (!machine()->take(pool->device, whole(bytes))) return abi::kOutOfMemory;
    pool->reserved += whole(bytes);
  }
  pool->used += bytes;
  *pointer = Process::get().new_address(bytes);
  Process::get().pool_blocks[*pointer] = {pool, bytes};
  return abi::kSuccess;
}

abi::Result allocate_of_current(abi::DevicePtr* pointer, std::uint64_t bytes, abi::Stream stream) {
  const Guard guard(Process::get().lock);
  abi::Stream const its = stream_of(stream);
  if (its == nullptr) return abi::kInvalidContext;
  abi::MemPool pool = Process::get().current_pools[its->device];
  return allocate(pointer, bytes, pool == nullptr ? default_pool(its->device) : pool, its);
}

abi::Result allocate_of(abi::DevicePtr* pointer,
                        std::uint64_t bytes,
                        abi::MemPool pool,
                        abi::Stream stream) {
  const Guard guard(Process::get().lock);
  abi::Stream const its = stream_of(stream);
  if (its == nullptr) return abi::kInvalidContext;
  if (!Process::get().pools.contains(pool)) return abi::kInvalidValue;
  return allocate(pointer, bytes, pool, its);
}

abi::Result free_in(abi::DevicePtr pointer, abi::Stream stream) {
  const Guard guard(Process::get().lock);
  abi::Stream const its = stream_of(stream);
  if (its == nullptr) return abi::kInvalidContext;
  const auto found = Process::get().pool_blocks.find(pointer);
  if (found == Process::get().pool_blocks.end()) return abi::kInvalidValue;
  found->second.pool->freed.push_back({found->second.bytes, its->place, its});
  Process::get().pool_blocks.erase(found);
  return abi::kSuccess;
}

}  // namespace

abi::MemPool default_pool(std::size_t device) {
  abi::MemPool& its = Process::get().default_pools[device];
  if (its == nullptr) {
    its = new abi::MemPoolOf{.device = device};
    Process::get().pools.insert(its);
  }
  return its;
}

void release_free_pools() {
  const Guard guard(Process::get().lock);
  for (const abi::MemPool pool : Process::get().pools) {
    collect(pool, nullptr);
    shrink(pool, pool->threshold);
  }
}

}  // namespace fake_cuda

extern "C" {

#define FAKE_DECLARE(name) __attribute__((visibility("default"))) abi::call::name name
FAKE_DECLARE(cuMemAllocAsync);
FAKE_DECLARE(cuMemAllocFromPoolAsync);
FAKE_DECLARE(cuMemFreeAsync);
FAKE_DECLARE(cuDeviceGetDefaultMemPool);
FAKE_DECLARE(cuDeviceGetMemPool);
FAKE_DECLARE(cuDeviceSetMemPool);
FAKE_DECLARE(cuMemPoolCreate);
FAKE_DECLARE(cuMemPoolDestroy);
FAKE_DECLARE(cuMemPoolTrimTo);
FAKE_DECLARE(cuMemPoolSetAttribute);
FAKE_DECLARE(cuMemPoolGetAttribute);
#undef FAKE_DECLARE
#define FAKE_DECLARE(name) __attribute__((visibility("default"))) abi::call::name name##_ptsz
FAKE_DECLARE(cuMemAllocAsync);
FAKE_DECLARE(cuMemAllocFromPoolAsync);
FAKE_DECLARE(cuMemFreeAsync);

abi::Result cuMemAllocAsync(abi::DevicePtr* pointer, std::size_t bytes, abi::Stream stream) {
  const Call call(__func__);
  return allocate_of_current(pointer, bytes, stream);
}
abi::Result cuMemAllocAsync_ptsz(abi::DevicePtr* pointer, std::size_t bytes, abi::Stream stream) {
  const Call call(__func__);
  return allocate_of_current(pointer, bytes, stream);
}
abi::Result cuMemAllocFromPoolAsync(abi::DevicePtr* pointer,
                                    std::size_t bytes,
                                    abi::MemPool pool,
                                    abi::Stream stream) {
  const Call call(__func__);
  return allocate_of(pointer, bytes, pool, stream);
}
abi::Result cuMemAllocFromPoolAsync_ptsz(abi::DevicePtr* pointer,
                                         std::size_t bytes,
                                         abi::MemPool pool,
                                         abi::Stream stream) {
  const Call call(__func__);
  return allocate_of(pointer, bytes, pool, stream);
}
abi::Result cuMemFreeAsync(abi::DevicePtr pointer, abi::Stream stream) {
  const Call call(__func__);
  return free_in(pointer, stream);
}
abi::Result cuMemFreeAsync_ptsz(abi::DevicePtr pointer, abi::Stream stream) {
  const Call call(__func__);
  return free_in(pointer, stream);
}

abi::Result cuDeviceGetDefaultMemPool(abi::MemPool* pool, abi::Device device) {
  const Call call(__func__);
  const Guard guard(Process::get().lock);
  *pool = default_pool(static_cast<std::size_t>(device));
  return abi::kSuccess;
}

abi::Result cuDeviceGetMemPool(abi::MemPool* pool, abi::Device device) {
  const Call call(__func__);
  const Guard guard(Process::get().lock);
  const auto index = static_cast<std::size_t>(device);
  *pool = Process::get().current_pools[index];
  if (*pool == nullptr) *pool = default_pool(index);
  return abi::kSuccess;
}

abi::Result cuDeviceSetMemPool(abi::Device device, abi::MemPool pool) {
  const Call call(__func__);
  const Guard guard(Process::get().lock);
  Process::get().current_pools[static_cast<std::size_t>(device)] = pool;
  return abi::kSuccess;
}

abi::Result cuMemPoolCreate(abi::MemPool* pool, const abi::PoolProps* props) {
  const Call call(__func__);
  if (props->location.type != abi::kLocationDevice) return abi::kNotSupported;
  const Guard guard(Process::get().lock);
  *pool = new abi::MemPoolOf{.device = static_cast<std::size_t>(props->location.id)};
  Process::get().pools.insert(*pool);
  return abi::kSuccess;
}

/// With all that was given out of it: this driver waits for none of it.
abi::Result cuMemPoolDestroy(abi::MemPool pool) {
  const Call call(__func__);
  const Guard guard(Process::get().lock);
  if (Process::get().pools.erase(pool) == 0) return abi::kInvalidValue;
  std::erase_if(Process::get().pool_blocks,
                [&](const auto& entry) { return entry.second.pool == pool; });
  machine()->give_back(pool->device, pool->reserved);
  delete pool;
  return abi::kSuccess;
}

abi::Result cuMemPoolTrimTo(abi::MemPool pool, std::size_t keep) {
  const Call call(__func__);
  const Guard guard(Process::get().lock);
  collect(pool, nullptr);
  shrink(pool, keep);
  return abi::kSuccess;
}

abi::Result cuMemPoolSetAttribute(abi::MemPool pool, int attribute, void* value) {
  const Call call(__func__);
  if (attribute != abi::kPoolReleaseThreshold) return abi::kNotSupported;
  const Guard guard(Process::get().lock);
  pool->threshold = std::min(*static_cast<std::uint64_t*>(value), std::uint64_t{1} << 50);
  return abi::kSuccess;
}

abi::Result cuMemPoolGetAttribute(abi::MemPool pool, int attribute, void* value) {
  const Call call(__func__);
  const Guard guard(Process::get().lock);
  auto* const number = static_cast<std::uint64_t*>(value);
  switch (attribute) {
    case abi::kPoolReservedNow:
      *number = pool->reserved;
      return abi::kSuccess;
    case abi::kPoolUsedNow:
      collect(pool, nullptr);
      *number = pool->used;
      return abi::kSuccess;
    case abi::kPoolReleaseThreshold:
      *number = pool->threshold;
      return abi::kSuccess;
    default:
      return abi::kNotSupported;
  }
}

}  // extern "C"
