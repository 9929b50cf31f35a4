// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "devices/sim/slices.h"
#include "world.h"

// NVML as far as gflow-gpumon calls it. An unmodified driver library behaves like this on a machine
// with the GPUs of the file; what it does wrong is said there too (docs/format/machine.md).
using namespace fake_nvml;  // NOLINT(google-build-using-namespace): the C interface is global
using gflow::devices::sim::DeviceState;

namespace {

abi::Return put(const std::string& text, char* out, std::uint32_t size) {
  if (text.size() >= size) return abi::kInsufficientSize;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return abi::kSuccess;
}

/// Gives a reading that a device may not have.
template <typename Value>
abi::Return put_number(const std::optional<Value>& value, std::uint32_t* out) {
  if (!value) return abi::kNotSupported;
  *out = static_cast<std::uint32_t>(*value);
  return abi::kSuccess;
}

// What the driver keeps for itself: total = reserved + used + free.
constexpr std::uint64_t kReserved = std::uint64_t{256} << 20;

abi::MemoryV2 memory_of(const Entry& entry) {
  const gflow::Device& device = entry.device->device;
  const gflow::Memory all = entry.slice != nullptr ? entry.slice->memory_total
                                                   : device.memory_total.value_or(gflow::Memory{});
  const gflow::Memory in_use = entry.slice != nullptr
                                   ? entry.slice->memory_used
                                   : device.memory_used.value_or(gflow::Memory{});
  const auto total = static_cast<std::uint64_t>(all.bytes);
  const auto used = static_cast<std::uint64_t>(in_use.bytes);
  const std::uint64_t reserved = std::min(kReserved, total - used);
  return {abi::kMemoryV2, total, reserved, total - used - reserved, used};
}

}  // namespace

extern "C" {

abi::Return nvmlInit_v2() {
  const abi::Return loaded = world().load();
  return loaded == abi::kSuccess ? world().entering(__func__) : loaded;
}

abi::Return nvmlShutdown() { return world().entering(__func__); }

const char* nvmlErrorString(abi::Return code) {
  switch (static_cast<int>(code)) {
    case abi::kSuccess:
      return "Success";
    case abi::kNotSupported:
      return "Not Supported";
    case abi::kNoPermission:
      return "Insufficient Permissions";
    case abi::kFunctionNotFound:
      return "Function Not Found";
    case abi::kInUse:
      return "In use by another client";
    case abi::kInsufficientResources:
      return "Insufficient Resources";
    case abi::kNotFound:
      return "Not Found";
    case abi::kGpuIsLost:
      return "GPU is lost";
    default:
      return "Unknown Error";
  }
}

abi::Return nvmlSystemGetDriverVersion(char* version, std::uint32_t size) {
  const abi::Return code = world().entering(__func__);
  return code == abi::kSuccess ? put(world().machine().driver, version, size) : code;
}

/// The first call of every reading: here the file is read again, so that its changes are seen.
abi::Return nvmlDeviceGetCount_v2(std::uint32_t* count) {
  if (const abi::Return loaded = world().load(); loaded != abi::kSuccess) return loaded;
  *count = static_cast<std::uint32_t>(world().machine().devices.size());
  return world().entering(__func__);
}

abi::Return nvmlDeviceGetHandleByIndex_v2(std::uint32_t index, abi::Handle* device) {
  *device = world().handle_of(index);
  return enter(__func__, *device, "").code;
}

abi::Return nvmlDeviceGetName(abi::Handle handle, char* name, std::uint32_t size) {
  const Entry entry = enter_any(__func__, handle, "");
  if (entry.device == nullptr) return entry.code;
  const gflow::Device& device = entry.device->device;
  return put(entry.slice == nullptr ? device.model : slice_model(device, *entry.slice), name, size);
}

abi::Return nvmlDeviceGetUUID(abi::Handle handle, char* uuid, std::uint32_t size) {
  const Entry entry = enter_any(__func__, handle, "");
  if (entry.device == nullptr) return entry.code;
  return put(entry.slice == nullptr ? entry.device->device.uuid : entry.slice->uuid, uuid, size);
}

/// Of /dev/nvidiaN, where the file says which device nodes it has.
abi::Return nvmlDeviceGetMinorNumber(abi::Handle handle, std::uint32_t* minor) {
  constexpr std::uint32_t kMajor = 195;
  const Entry entry = enter(__func__, handle, "");
  if (entry.device == nullptr) return entry.code;
  for (const gflow::DeviceNodes& nodes : entry.device->device.nodes) {
    if (nodes.major == kMajor) return put_number(std::optional(nodes.first), minor);
  }
  return abi::kNotSupported;
}

abi::Return nvmlDeviceGetPciInfo_v3(abi::Handle handle, abi::PciInfo* pci) {
  const Entry entry = enter(__func__, handle, "");
  if (entry.device == nullptr) return entry.code;
  *pci = {};
  return put(bus_id_of(*entry.device), pci->bus_id, sizeof pci->bus_id);
}

abi::Return nvmlDeviceGetMemoryInfo(abi::Handle handle, abi::MemoryV1* memory) {
  const Entry entry = enter_any(__func__, handle, "memory_total");
  if (entry.device == nullptr) return entry.code;
  const abi::MemoryV2 facts = memory_of(entry);
  *memory = {facts.total, facts.free, facts.used + facts.reserved};
  return abi::kSuccess;
}

abi::Return nvmlDeviceGetMemoryInfo_v2(abi::Handle handle, abi::MemoryV2* memory) {
  const Entry entry = enter_any(__func__, handle, "memory_total");
  if (entry.device == nullptr) return entry.code;
  if (memory->version != abi::kMemoryV2) return abi::kArgumentVersionMismatch;
  *memory = memory_of(entry);
  const Entry used = enter_any(__func__, handle, "memory_used");
  if (used.device == nullptr) memory->used = abi::kNotAvailable;
  return abi::kSuccess;
}

abi::Return nvmlDeviceGetUtilizationRates(abi::Handle handle, abi::Utilization* use) {
  const Entry entry = enter(__func__, handle, "utilization");
  if (entry.device == nullptr) return entry.code;
  if (entry.device->state == DeviceState::Mig) return abi::kNotSupported;  // as real ones do
  use->memory = 0;
  return put_number(entry.device->device.utilization_percent, &use->gpu);
}

abi::Return nvmlDeviceGetTemperature(abi::Handle handle,
                                     std::uint32_t sensor,
                                     std::uint32_t* celsius) {
  const Entry entry = enter(__func__, handle, "temperature");
  if (entry.device == nullptr) return entry.code;
  if (sensor != abi::kTemperatureGpu) return abi::kInvalidArgument;
  return put_number(entry.device->device.temperature_celsius, celsius);
}

abi::Return nvmlDeviceGetTemperatureV(abi::Handle handle, abi::TemperatureV1* temperature) {
  const Entry entry = enter(__func__, handle, "temperature");
  if (entry.device == nullptr) return entry.code;
  if (temperature->version != abi::kTemperatureV1) return abi::kArgumentVersionMismatch;
  const auto celsius = entry.device->device.temperature_celsius;
  if (!celsius) return abi::kNotSupported;
  temperature->celsius = *celsius;
  return abi::kSuccess;
}

abi::Return nvmlDeviceGetPowerUsage(abi::Handle handle, std::uint32_t* milliwatts) {
  const Entry entry = enter(__func__, handle, "power");
  if (entry.device == nullptr) return entry.code;
  return put_number(entry.device->device.power_milliwatts, milliwatts);
}

abi::Return nvmlDeviceGetEnforcedPowerLimit(abi::Handle handle, std::uint32_t* milliwatts) {
  const Entry entry = enter(__func__, handle, "power_limit");
  if (entry.device == nullptr) return entry.code;
  return put_number(entry.device->device.power_limit_milliwatts, milliwatts);
}

}  // extern "C"
