// SPDX-License-Identifier: Apache-2.0
#include "interpose/vmm.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <new>
#include <unordered_map>

#include "interpose/holdings.h"
#include "interpose/real.h"
#include "interpose/session.h"

using namespace gflow::interpose;  // NOLINT(google-build-using-namespace): the C interface is
                                   // global

namespace gflow::interpose {
namespace {

/// Physical memory, and what keeps it.
struct Made {
  Charge charge;
  std::uint64_t handles = 1;
  std::uint64_t mappings = 0;
};
struct Mapping {
  std::uint64_t size = 0;
  std::uint64_t made = 0;
};
/// A handle that was released may be given again while the memory it meant is still mapped: memory
/// has a number of its own.
struct Mappings {
  std::mutex lock;
  std::uint64_t last = 0;
  std::unordered_map<std::uint64_t, Made> made;
  std::unordered_map<abi::MemHandle, std::uint64_t> of_handle;
  std::map<abi::DevicePtr, Mapping> at;

  void give_back_unless_kept(std::uint64_t number) {
    const auto found = made.find(number);
    if (found == made.end() || found->second.handles + found->second.mappings > 0) return;
    refund(found->second.charge);
    made.erase(found);
  }
};

Mappings& mappings() {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): in use until the very end of the process
  static auto* const its = new Mappings;
  return *its;
}

}  // namespace

void forget_mappings() {
  new (&mappings()) Mappings;  // what was the parent's may be locked
}

}  // namespace gflow::interpose

/// The thread may have no context here: the device is that of the memory.
GFLOW_EXPORT abi::Result cuMemCreate(abi::MemHandle* handle,
                                     std::size_t size,
                                     const abi::AllocationProp* prop,
                                     unsigned long long flags) {
  const auto get = [&] { return call(driver().cuMemCreate, handle, size, prop, flags); };
  const bool is_device = prop != nullptr && prop->location.type == abi::kLocationDevice;
  if (!is_device || InDriver::is_inside()) return get();
  const auto device = Session::get().device(prop->location.id);
  if (!device) return get();
  const Charge charge{*device, rounded(size, kUnit)};
  if (!reserve(charge.device, charge.bytes)) return abi::kOutOfMemory;
  const abi::Result result = get();
  if (result != abi::kSuccess) {
    refund(charge);
    return result;
  }
  const std::lock_guard lock(mappings().lock);
  const std::uint64_t number = ++mappings().last;
  mappings().made[number] = {.charge = charge};
  mappings().of_handle[*handle] = number;
  return result;
}

// Under the lock with the call: a handle that is free may be another thread's at once.
GFLOW_EXPORT abi::Result cuMemRelease(abi::MemHandle handle) {
  const std::lock_guard lock(mappings().lock);
  const abi::Result result = call(driver().cuMemRelease, handle);
  const auto known = mappings().of_handle.find(handle);
  if (result != abi::kSuccess || known == mappings().of_handle.end()) return result;
  const std::uint64_t number = known->second;
  if (--mappings().made[number].handles == 0) mappings().of_handle.erase(known);
  mappings().give_back_unless_kept(number);
  return result;
}

GFLOW_EXPORT abi::Result cuMemRetainAllocationHandle(abi::MemHandle* handle, void* address) {
  const std::lock_guard lock(mappings().lock);
  const abi::Result result = call(driver().cuMemRetainAllocationHandle, handle, address);
  if (result != abi::kSuccess) return result;
  const auto wanted = reinterpret_cast<abi::DevicePtr>(address);
  auto next = mappings().at.upper_bound(wanted);
  if (next == mappings().at.begin()) return result;
  const auto& [start, mapping] = *--next;
  if (wanted - start >= mapping.size) return result;
  ++mappings().made[mapping.made].handles;
  mappings().of_handle[*handle] = mapping.made;
  return result;
}

GFLOW_EXPORT abi::Result cuMemMap(abi::DevicePtr pointer,
                                  std::size_t size,
                                  std::size_t offset,
                                  abi::MemHandle handle,
                                  unsigned long long flags) {
  const std::lock_guard lock(mappings().lock);
  const abi::Result result = call(driver().cuMemMap, pointer, size, offset, handle, flags);
  const auto known = mappings().of_handle.find(handle);
  if (result != abi::kSuccess || known == mappings().of_handle.end()) return result;
  ++mappings().made[known->second].mappings;
  mappings().at[pointer] = {size, known->second};
  return result;
}

/// Of one mapping or of several that lie side by side.
GFLOW_EXPORT abi::Result cuMemUnmap(abi::DevicePtr pointer, std::size_t size) {
  const std::lock_guard lock(mappings().lock);
  const abi::Result result = call(driver().cuMemUnmap, pointer, size);
  if (result != abi::kSuccess) return result;
  auto next = mappings().at.lower_bound(pointer);
  while (next != mappings().at.end() && next->first - pointer < size) {
    const std::uint64_t number = next->second.made;
    next = mappings().at.erase(next);
    --mappings().made[number].mappings;
    mappings().give_back_unless_kept(number);
  }
  return result;
}
