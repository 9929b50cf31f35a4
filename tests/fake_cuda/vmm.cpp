// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <map>

#include "process.h"

// Physical memory with a handle, and addresses to map it at. The smallest handle that is free is
// given next: it may be one whose memory is still mapped.
using namespace fake_cuda;  // NOLINT(google-build-using-namespace): the C interface is global

namespace {

struct Physical {
  std::size_t device = 0;
  std::uint64_t bytes = 0;
  int handles = 0;
  int mappings = 0;
  bool is_device = true;
};
struct MappedAt {
  std::uint64_t size = 0;
  std::shared_ptr<Physical> memory;
};
struct Virtual {
  std::map<abi::MemHandle, std::shared_ptr<Physical>> handles;
  std::map<abi::DevicePtr, MappedAt> mapped;
};

Virtual& all() {
  static auto* const everything = new Virtual;
  return *everything;
}

abi::MemHandle new_handle(const std::shared_ptr<Physical>& memory) {
  abi::MemHandle handle = 1;
  while (all().handles.contains(handle)) ++handle;
  all().handles[handle] = memory;
  return handle;
}

void free_unless_kept(const Physical& memory) {
  if (memory.handles + memory.mappings > 0 || !memory.is_device) return;
  machine()->give_back(memory.device, memory.bytes);
}

}  // namespace

extern "C" {

#define FAKE_DECLARE(name) __attribute__((visibility("default"))) abi::call::name name
FAKE_DECLARE(cuMemCreate);
FAKE_DECLARE(cuMemRelease);
FAKE_DECLARE(cuMemRetainAllocationHandle);
FAKE_DECLARE(cuMemAddressReserve);
FAKE_DECLARE(cuMemAddressFree);
FAKE_DECLARE(cuMemMap);
FAKE_DECLARE(cuMemUnmap);

abi::Result cuMemCreate(abi::MemHandle* handle,
                        std::size_t size,
                        const abi::AllocationProp* prop,
                        unsigned long long) {
  const Call call(__func__);
  if (machine() == nullptr) return abi::kNotInitialized;
  if (size == 0 || size % (2 * kMiB) != 0) return abi::kInvalidValue;
  const Guard guard(Process::get().lock);
  const bool is_device = prop->location.type == abi::kLocationDevice;
  const auto device = static_cast<std::size_t>(is_device ? prop->location.id : 0);
  if (device >= machine()->devices.size()) return abi::kInvalidDevice;
  if (is_device && !machine()->take(device, size)) return abi::kOutOfMemory;
  *handle = new_handle(std::make_shared<Physical>(
      Physical{.device = device, .bytes = size, .handles = 1, .is_device = is_device}));
  return abi::kSuccess;
}

abi::Result cuMemRelease(abi::MemHandle handle) {
  const Call call(__func__);
  const Guard guard(Process::get().lock);
  const auto found = all().handles.find(handle);
  if (found == all().handles.end()) return abi::kInvalidValue;
  Physical& memory = *found->second;
  --memory.handles;
  free_unless_kept(memory);
  all().handles.erase(found);
  return abi::kSuccess;
}

abi::Result cuMemRetainAllocationHandle(abi::MemHandle* handle, void* address) {
  const Call call(__func__);
  const Guard guard(Process::get().lock);
  const auto wanted = reinterpret_cast<abi::DevicePtr>(address);
  for (const auto& [start, mapped] : all().mapped) {
    if (wanted < start || wanted - start >= mapped.size) continue;
    ++mapped.memory->handles;
    *handle = new_handle(mapped.memory);
    return abi::kSuccess;
  }
  return abi::kInvalidValue;
}

abi::Result cuMemAddressReserve(
    abi::DevicePtr* pointer, std::size_t size, std::size_t, abi::DevicePtr, unsigned long long) {
  const Call call(__func__);
  const Guard guard(Process::get().lock);
  *pointer = Process::get().new_address(size);
  return abi::kSuccess;
}

abi::Result cuMemAddressFree(abi::DevicePtr, std::size_t) {
  const Call call(__func__);
  return abi::kSuccess;
}

abi::Result cuMemMap(abi::DevicePtr pointer,
                     std::size_t size,
                     std::size_t,
                     abi::MemHandle handle,
                     unsigned long long) {
  const Call call(__func__);
  const Guard guard(Process::get().lock);
  const auto found = all().handles.find(handle);
  if (found == all().handles.end() || all().mapped.contains(pointer)) return abi::kInvalidValue;
  ++found->second->mappings;
  all().mapped[pointer] = {size, found->second};
  return abi::kSuccess;
}

abi::Result cuMemUnmap(abi::DevicePtr pointer, std::size_t size) {
  const Call call(__func__);
  const Guard guard(Process::get().lock);
  std::erase_if(all().mapped, [&](const auto& entry) {
    if (entry.first < pointer || entry.first - pointer >= size) return false;
    --entry.second.memory->mappings;
    free_unless_kept(*entry.second.memory);
    return true;
  });
  return abi::kSuccess;
}

}  // extern "C"
