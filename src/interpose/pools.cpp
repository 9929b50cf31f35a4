// SPDX-License-Identifier: Apache-2.0
#include "interpose/pools.h"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <new>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "interpose/holdings.h"
#include "interpose/real.h"
#include "interpose/session.h"

// How much a pool takes of the device for an allocation is known afterwards. Before, as much is
// reserved as if it had nothing free, so that no more is taken than there is room for; then the
// pool is charged what it has. The driver is called under the lock of this process's pools: what
// one thread's call makes of a pool is not taken for another's.
using namespace gflow::interpose;  // NOLINT(google-build-using-namespace): the C interface is
                                   // global

namespace gflow::interpose {
namespace {

/// What a driver takes of a device at once, for a pool.
constexpr std::uint64_t kPoolUnit = std::uint64_t{32} << 20;

struct Pools {
  std::mutex lock;
  std::unordered_map<abi::MemPool, Charge> charged;
  std::unordered_set<abi::MemPool> unlimited;  ///< of the host, or of a device without a limit
  std::atomic<bool> are_any = false;
};

Pools& pools() {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): in use until the very end of the process
  static auto* const its = new Pools;
  return *its;
}

std::optional<std::uint64_t> bytes_of(abi::MemPool pool, int attribute) {
  std::uint64_t bytes = 0;
  if (call(driver().cuMemPoolGetAttribute, pool, attribute, static_cast<void*>(&bytes)) !=
      abi::kSuccess) {
    return std::nullopt;
  }
  return bytes;
}

/// Under the lock. It is never charged more than before.
void settle(abi::MemPool pool, Charge& charge) {
  const auto has = bytes_of(pool, abi::kPoolReservedNow);
  if (!has || *has >= charge.bytes) return;
  Session::get().refund(charge.device, charge.bytes - *has);
  charge.bytes = *has;
}

void settle_all() {
  for (auto& [pool, charge] : pools().charged) settle(pool, charge);
}

/// Under the lock.
bool reserve_for_pool(std::size_t device, std::uint64_t bytes) {
  Session& session = Session::get();
  if (session.try_reserve(device, bytes)) return true;
  settle_all();
  if (session.try_reserve(device, bytes)) return true;
  session.sweep();
  return session.try_reserve(device, bytes);
}

struct Wanted {
  abi::MemPool pool;
  std::size_t device;
  std::size_t bytes;
  abi::Stream stream;
};

/// The functions of a stream as NAME or as NAME_ptsz.
struct StreamCalls {
  abi::call::cuMemFreeAsync* free;
  abi::call::cuStreamSynchronize* wait;
  abi::call::cuStreamGetDevice* device;
};
StreamCalls of_legacy_stream() {
  return {driver().cuMemFreeAsync, driver().cuStreamSynchronize, driver().cuStreamGetDevice};
}
StreamCalls of_thread_stream() {
  return {driver().cuMemFreeAsync_ptsz,
          driver().cuStreamSynchronize_ptsz,
          driver().cuStreamGetDevice_ptsz};
}

using Locked = std::unique_lock<std::mutex>;

/// Makes the pools give back what is free, that which waits for the stream, too: for which others
/// may have to allocate first.
void shrink(Locked& locked, const Wanted& wanted, const StreamCalls& calls) {
  locked.unlock();
  (void)call(calls.wait, wanted.stream);
  locked.lock();
  for (auto& [pool, charge] : pools().charged) {
    if (charge.device != wanted.device) continue;
    (void)call(driver().cuMemPoolTrimTo, pool, std::size_t{0});
    settle(pool, charge);
  }
}

/// Under the lock. What the pool is charged; one that was destroyed meanwhile is charged anew.
Charge& charge_of(const Wanted& wanted) {
  return pools().charged.try_emplace(wanted.pool, Charge{wanted.device, 0}).first->second;
}

/// Under the lock: charges the pool what it has. False if it took more than was reserved and there
/// is no room for that.
bool charge_taken(const Wanted& wanted, std::uint64_t reserved) {
  Session& session = Session::get();
  Charge& charge = charge_of(wanted);
  const std::uint64_t has = bytes_of(wanted.pool, abi::kPoolReservedNow).value_or(charge.bytes);
  const std::uint64_t covered = charge.bytes + reserved;
  const bool fits = has <= covered || session.try_reserve(wanted.device, has - covered);
  if (has < covered) session.refund(wanted.device, covered - has);
  charge.bytes = fits ? has : covered;
  return fits;
}

template <typename Get>
abi::Result get_of_pool(abi::DevicePtr* pointer,
                        const Wanted& wanted,
                        const StreamCalls& calls,
                        Get get) {
  Locked locked(pools().lock);
  pools().are_any.store(true, std::memory_order_relaxed);
  settle(wanted.pool, charge_of(wanted));
  const std::uint64_t reserved = rounded(wanted.bytes, kPoolUnit);
  if (!reserve_for_pool(wanted.device, reserved)) {
    shrink(locked, wanted, calls);
    if (!reserve_for_pool(wanted.device, reserved)) {
      Session::get().count_refusal(wanted.device);
      return abi::kOutOfMemory;
    }
  }
  const abi::Result result = get();
  if (charge_taken(wanted, reserved) || result != abi::kSuccess) return result;
  (void)call(calls.free, *pointer, wanted.stream);
  shrink(locked, wanted, calls);
  Session::get().count_refusal(wanted.device);
  return abi::kOutOfMemory;
}

/// The device of a stream: of the calling thread's context where the driver cannot say.
std::optional<abi::Device> device_of(abi::Stream stream, const StreamCalls& calls) {
  abi::Device device = 0;
  if (call(calls.device, stream, &device) == abi::kSuccess) return device;
  if (call(driver().cuCtxGetDevice, &device) == abi::kSuccess) return device;
  return std::nullopt;
}

template <typename Get>
abi::Result alloc_async(abi::DevicePtr* pointer,
                        std::size_t bytes,
                        abi::Stream stream,
                        const StreamCalls& calls,
                        Get get) {
  if (InDriver::is_inside() || !Session::get().limits()) return get();
  const auto ordinal = device_of(stream, calls);
  const auto device = ordinal ? Session::get().device(*ordinal) : std::nullopt;
  abi::MemPool pool = nullptr;
  if (!device || call(driver().cuDeviceGetMemPool, &pool, *ordinal) != abi::kSuccess) return get();
  return get_of_pool(pointer, {pool, *device, bytes, stream}, calls, get);
}

/// A pool is charged to the device it was made for, else to that of the stream.
template <typename Get>
abi::Result alloc_from_pool(abi::DevicePtr* pointer,
                            const std::pair<abi::MemPool, std::size_t>& of,
                            abi::Stream stream,
                            const StreamCalls& calls,
                            Get get) {
  if (InDriver::is_inside() || !Session::get().limits()) return get();
  const auto [pool, bytes] = of;
  std::optional<std::size_t> device;
  {
    const std::lock_guard lock(pools().lock);
    if (pools().unlimited.contains(pool)) return get();
    const auto known = pools().charged.find(pool);
    if (known != pools().charged.end()) device = known->second.device;
  }
  if (!device) {
    const auto ordinal = device_of(stream, calls);
    device = ordinal ? Session::get().device(*ordinal) : std::nullopt;
  }
  if (!device) return get();
  return get_of_pool(pointer, {pool, *device, bytes, stream}, calls, get);
}

/// Memory that was not allocated so may be freed so, too.
template <typename Free>
abi::Result free_async(abi::DevicePtr pointer, Free free) {
  const auto charge = InDriver::is_inside() ? std::nullopt : release(Kind::Pointer, pointer);
  const abi::Result result = free();
  if (!charge) return result;
  if (result == abi::kSuccess) {
    refund(*charge);
  } else {
    hold(Kind::Pointer, pointer, *charge);
  }
  return result;
}

template <typename Wait>
abi::Result wait_and_settle(Wait wait) {
  const abi::Result result = wait();
  if (!InDriver::is_inside()) settle_pools();
  return result;
}

}  // namespace

void settle_pools() {
  if (!pools().are_any.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(pools().lock);
  settle_all();
}

void forget_pools() {
  new (&pools()) Pools;  // what was the parent's may be locked
}

}  // namespace gflow::interpose

GFLOW_EXPORT abi::Result cuMemAllocAsync(abi::DevicePtr* pointer,
                                         std::size_t bytes,
                                         abi::Stream stream) {
  return alloc_async(pointer, bytes, stream, of_legacy_stream(), [&] {
    return call(driver().cuMemAllocAsync, pointer, bytes, stream);
  });
}

GFLOW_EXPORT abi::Result cuMemAllocAsync_ptsz(abi::DevicePtr* pointer,
                                              std::size_t bytes,
                                              abi::Stream stream) {
  return alloc_async(pointer, bytes, stream, of_thread_stream(), [&] {
    return call(driver().cuMemAllocAsync_ptsz, pointer, bytes, stream);
  });
}

GFLOW_EXPORT abi::Result cuMemAllocFromPoolAsync(abi::DevicePtr* pointer,
                                                 std::size_t bytes,
                                                 abi::MemPool pool,
                                                 abi::Stream stream) {
  return alloc_from_pool(pointer, {pool, bytes}, stream, of_legacy_stream(), [&] {
    return call(driver().cuMemAllocFromPoolAsync, pointer, bytes, pool, stream);
  });
}

GFLOW_EXPORT abi::Result cuMemAllocFromPoolAsync_ptsz(abi::DevicePtr* pointer,
                                                      std::size_t bytes,
                                                      abi::MemPool pool,
                                                      abi::Stream stream) {
  return alloc_from_pool(pointer, {pool, bytes}, stream, of_thread_stream(), [&] {
    return call(driver().cuMemAllocFromPoolAsync_ptsz, pointer, bytes, pool, stream);
  });
}

GFLOW_EXPORT abi::Result cuMemFreeAsync(abi::DevicePtr pointer, abi::Stream stream) {
  return free_async(pointer, [&] { return call(driver().cuMemFreeAsync, pointer, stream); });
}

GFLOW_EXPORT abi::Result cuMemFreeAsync_ptsz(abi::DevicePtr pointer, abi::Stream stream) {
  return free_async(pointer, [&] { return call(driver().cuMemFreeAsync_ptsz, pointer, stream); });
}

GFLOW_EXPORT abi::Result cuMemPoolCreate(abi::MemPool* pool, const abi::PoolProps* props) {
  const abi::Result result = call(driver().cuMemPoolCreate, pool, props);
  if (result != abi::kSuccess || InDriver::is_inside()) return result;
  const bool is_device = props->location.type == abi::kLocationDevice;
  const auto device = is_device ? Session::get().device(props->location.id) : std::nullopt;
  const std::lock_guard lock(pools().lock);
  if (device) {
    pools().charged[*pool] = {*device, 0};
  } else {
    pools().unlimited.insert(*pool);
  }
  return result;
}

/// What is still given out of it stays charged: the driver does not say when it is freed.
GFLOW_EXPORT abi::Result cuMemPoolDestroy(abi::MemPool pool) {
  const std::lock_guard lock(pools().lock);
  const auto known = pools().charged.find(pool);
  const std::uint64_t given_out =
      known == pools().charged.end() ? 0 : bytes_of(pool, abi::kPoolUsedNow).value_or(0);
  const abi::Result result = call(driver().cuMemPoolDestroy, pool);
  if (result == abi::kSuccess) pools().unlimited.erase(pool);
  if (result != abi::kSuccess || known == pools().charged.end()) return result;
  Charge charge = known->second;
  pools().charged.erase(known);
  if (charge.bytes > given_out) Session::get().refund(charge.device, charge.bytes - given_out);
  return result;
}

GFLOW_EXPORT abi::Result cuMemPoolTrimTo(abi::MemPool pool, std::size_t keep) {
  return wait_and_settle([&] { return call(driver().cuMemPoolTrimTo, pool, keep); });
}

GFLOW_EXPORT abi::Result cuStreamSynchronize(abi::Stream stream) {
  return wait_and_settle([&] { return call(driver().cuStreamSynchronize, stream); });
}

GFLOW_EXPORT abi::Result cuStreamSynchronize_ptsz(abi::Stream stream) {
  return wait_and_settle([&] { return call(driver().cuStreamSynchronize_ptsz, stream); });
}

GFLOW_EXPORT abi::Result cuCtxSynchronize() {
  return wait_and_settle([&] { return call(driver().cuCtxSynchronize); });
}

GFLOW_EXPORT abi::Result cuCtxSynchronize_v2(abi::Context context) {
  return wait_and_settle([&] { return call(driver().cuCtxSynchronize_v2, context); });
}

GFLOW_EXPORT abi::Result cuEventSynchronize(abi::Event event) {
  return wait_and_settle([&] { return call(driver().cuEventSynchronize, event); });
}
