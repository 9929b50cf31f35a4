// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <optional>

#include "core/mig_profile.h"
#include "world.h"

// The MIG devices of a GPU. Theirs are handles, as if they were GPUs, which few calls take.
using namespace fake_nvml;  // NOLINT(google-build-using-namespace): the C interface is global
using gflow::devices::sim::DeviceState;

namespace {

constexpr std::uint32_t kMostSlices = 7;

bool has_mig(const SimDevice& device) { return device.state == DeviceState::Mig; }

/// Which of the slices has the number. They are numbered from 0, and the last one has the last
/// number: as where those between were destroyed.
std::optional<std::size_t> slice_at(const SimDevice& device, std::uint32_t number) {
  const std::size_t count = device.slices.size();
  if (number + 1 == kMostSlices && count > 0) return count - 1;
  return number + 1 < count ? std::optional<std::size_t>(number) : std::nullopt;
}

abi::Return put_instance(const Entry& entry, std::uint32_t* out, int gflow::MigDevice::* instance) {
  if (entry.device == nullptr) return entry.code;
  if (entry.slice == nullptr) return abi::kNotSupported;
  *out = static_cast<std::uint32_t>(entry.slice->mig.*instance);
  return abi::kSuccess;
}

}  // namespace

extern "C" {

abi::Return nvmlDeviceGetMigMode(abi::Handle handle,
                                 std::uint32_t* current,
                                 std::uint32_t* pending) {
  const Entry entry = enter(__func__, handle, "");
  if (entry.device == nullptr) return entry.code;
  *current = has_mig(*entry.device) ? abi::kMigOn : 0;
  *pending = *current;
  return abi::kSuccess;
}

abi::Return nvmlDeviceGetMaxMigDeviceCount(abi::Handle handle, std::uint32_t* count) {
  const Entry entry = enter(__func__, handle, "");
  if (entry.device == nullptr) return entry.code;
  *count = has_mig(*entry.device) ? kMostSlices : 0;
  return abi::kSuccess;
}

abi::Return nvmlDeviceGetMigDeviceHandleByIndex(abi::Handle handle,
                                                std::uint32_t index,
                                                abi::Handle* slice) {
  const Entry entry = enter(__func__, handle, "");
  if (entry.device == nullptr) return entry.code;
  if (!has_mig(*entry.device)) return abi::kNotSupported;
  if (index >= kMostSlices) return abi::kInvalidArgument;
  const auto found = slice_at(*entry.device, index);
  if (!found) return abi::kNotFound;
  *slice = world().handle_of(*entry.device, *found);
  return abi::kSuccess;
}

abi::Return nvmlDeviceIsMigDeviceHandle(abi::Handle handle, std::uint32_t* is_slice) {
  const Entry entry = enter_any(__func__, handle, "");
  if (entry.device == nullptr) return entry.code;
  *is_slice = entry.slice != nullptr ? 1 : 0;
  return abi::kSuccess;
}

abi::Return nvmlDeviceGetDeviceHandleFromMigDeviceHandle(abi::Handle slice, abi::Handle* device) {
  const Entry entry = enter_any(__func__, slice, "");
  if (entry.device == nullptr) return entry.code;
  if (entry.slice == nullptr) return abi::kInvalidArgument;
  *device = world().handle_of(static_cast<std::size_t>(entry.device->device.index));
  return abi::kSuccess;
}

abi::Return nvmlDeviceGetGpuInstanceId(abi::Handle handle, std::uint32_t* id) {
  return put_instance(enter_any(__func__, handle, ""), id, &gflow::MigDevice::gpu_instance);
}

abi::Return nvmlDeviceGetComputeInstanceId(abi::Handle handle, std::uint32_t* id) {
  return put_instance(enter_any(__func__, handle, ""), id, &gflow::MigDevice::compute_instance);
}

abi::Return nvmlDeviceGetAttributes_v2(abi::Handle handle, abi::Attributes* attributes) {
  const Entry entry = enter_any(__func__, handle, "");
  if (entry.device == nullptr) return entry.code;
  if (entry.slice == nullptr) return abi::kNotSupported;
  const auto profile = gflow::parse_mig_profile(entry.slice->mig.profile);
  *attributes = {};
  attributes->gpu_instance_slices = static_cast<std::uint32_t>(profile->gpu_slices);
  attributes->compute_instance_slices = static_cast<std::uint32_t>(profile->compute_slices);
  attributes->memory_mib = static_cast<std::uint64_t>(entry.slice->memory_total.bytes) >> 20;
  return abi::kSuccess;
}

}  // extern "C"
