// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "interpose/holdings.h"
#include "interpose/pools.h"
#include "interpose/real.h"
#include "interpose/session.h"

// What asks how much there is sees what this job may have.
using namespace gflow::interpose;  // NOLINT(google-build-using-namespace): the C interface is
                                   // global

namespace {

/// Of a device of the account: how much may be had, and how much of that is not.
struct Slice {
  std::uint64_t total;
  std::uint64_t used;
  [[nodiscard]] std::uint64_t free() const { return total - std::min(used, total); }
};

Slice slice_of(std::size_t device, std::uint64_t real_total) {
  settle_pools();
  Session::get().sweep();
  const Session::Amounts amounts = Session::get().amounts(device);
  return {std::min(amounts.limit, real_total), amounts.used};
}

std::optional<std::size_t> device_of(nvml::Handle handle) {
  std::array<char, nvml::kUuidSize> uuid{};
  const auto ask = management().nvmlDeviceGetUUID;
  if (ask == nullptr || ask(handle, uuid.data(), uuid.size()) != nvml::kSuccess)
    return std::nullopt;
  return Session::get().device(uuid.data());
}

}  // namespace

/// Less is free than the slice has left where others have the rest of the device.
GFLOW_EXPORT abi::Result cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  const abi::Result result = call(driver().cuMemGetInfo_v2, free, total);
  if (result != abi::kSuccess || InDriver::is_inside()) return result;
  if (const auto device = Session::get().current_device()) {
    const Slice slice = slice_of(*device, *total);
    *total = slice.total;
    *free = std::min<std::size_t>(*free, slice.free());
  }
  return result;
}

GFLOW_EXPORT abi::Result cuDeviceTotalMem_v2(std::size_t* bytes, abi::Device device) {
  const abi::Result result = call(driver().cuDeviceTotalMem_v2, bytes, device);
  if (result != abi::kSuccess || InDriver::is_inside()) return result;
  if (const auto limited = Session::get().device(device)) {
    *bytes = std::min<std::size_t>(*bytes, Session::get().amounts(*limited).limit);
  }
  return result;
}

GFLOW_EXPORT nvml::Return nvmlDeviceGetMemoryInfo(nvml::Handle handle, nvml::MemoryV1* memory) {
  if (management().nvmlDeviceGetMemoryInfo == nullptr) return nvml::kFunctionNotFound;
  const nvml::Return result = management().nvmlDeviceGetMemoryInfo(handle, memory);
  if (result != nvml::kSuccess) return result;
  if (const auto device = device_of(handle)) {
    const Slice slice = slice_of(*device, memory->total);
    *memory = {slice.total, slice.free(), slice.total - slice.free()};
  }
  return result;
}

GFLOW_EXPORT nvml::Return nvmlDeviceGetMemoryInfo_v2(nvml::Handle handle, nvml::MemoryV2* memory) {
  if (management().nvmlDeviceGetMemoryInfo_v2 == nullptr) return nvml::kFunctionNotFound;
  const nvml::Return result = management().nvmlDeviceGetMemoryInfo_v2(handle, memory);
  if (result != nvml::kSuccess) return result;
  if (const auto device = device_of(handle)) {
    const Slice slice = slice_of(*device, memory->total);
    *memory = {memory->version, slice.total, 0, slice.free(), slice.total - slice.free()};
  }
  return result;
}
