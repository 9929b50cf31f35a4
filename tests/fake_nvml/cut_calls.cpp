// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "core/mig_profile.h"
#include "devices/sim/made_instances.h"
#include "os/user.h"
#include "world.h"

// The calls that cut a GPU, and those that tell how. What is made is kept beside the file of
// $GFLOW_FAKE_NVML, so that other processes see it; what the file has itself nobody destroys.
using namespace fake_nvml;  // NOLINT(google-build-using-namespace): the C interface is global
using gflow::MigGpu;
using gflow::MigInstance;
using gflow::MigKind;
using gflow::devices::sim::DeviceState;

namespace {

constexpr std::uint32_t kFirstProfile = 100;  // numbers of profiles are none of the indices
// Handles of instances: the number of the GPU from 1, that of the instance, what it is.
constexpr unsigned kIdShift = 16;
constexpr unsigned kWhatShift = 32;
constexpr std::uintptr_t kGpuInstance = 0x61;
constexpr std::uintptr_t kComputeInstance = 0x62;

std::string file() { return gflow::os::environment("GFLOW_FAKE_NVML").value_or(""); }

abi::Handle handle_of(std::size_t device, int id, std::uintptr_t what) {
  const auto number = static_cast<std::uintptr_t>(id) << kIdShift | what << kWhatShift;
  return reinterpret_cast<abi::Handle>((device + 1) | number);  // NOLINT(performance-no-int-to-ptr)
}

/// A GPU with MIG, and an instance of it where the handle is one.
struct Cut {
  abi::Return code = abi::kInvalidArgument;
  const SimDevice* device = nullptr;
  const MigInstance* instance = nullptr;
};

Cut enter_gpu(const char* call, abi::Handle handle) {
  const Entry entry = enter(call, handle, "");
  if (entry.device == nullptr) return {entry.code};
  if (entry.device->state != DeviceState::Mig) return {abi::kNotSupported};
  return {abi::kSuccess, entry.device};
}

Cut enter_instance(const char* call, abi::Handle handle, std::uintptr_t what) {
  if (const abi::Return wanted = world().entering(call); wanted != abi::kSuccess) return {wanted};
  const auto word = reinterpret_cast<std::uintptr_t>(handle);
  const std::size_t number = word & 0xFFFF;
  const auto& devices = world().machine().devices;
  if (word >> kWhatShift != what || number < 1 || number > devices.size()) return {};
  const auto& instances = devices[number - 1].mig.instances;
  const auto id = static_cast<int>(word >> kIdShift & 0xFFFF);
  const auto at = std::ranges::find(instances, id, &MigInstance::id);
  if (at == instances.end()) return {abi::kNotFound};
  return {abi::kSuccess, &devices[number - 1], &*at};
}

const MigKind* kind_at(const SimDevice& device, std::uint32_t id) {
  const std::size_t at = id - kFirstProfile;
  return id >= kFirstProfile && at < device.mig.kinds.size() ? &device.mig.kinds[at] : nullptr;
}

std::uint32_t compute_slices(const std::string& profile) {
  return static_cast<std::uint32_t>(gflow::parse_mig_profile(profile)->gpu_slices);
}

/// Only root may change something.
bool may_change() {
  return gflow::os::environment("GFLOW_FAKE_NVML_UNPRIVILEGED").value_or("") == "";
}

abi::Return code_of(const gflow::Error& error) {
  switch (error.code) {
    case gflow::Code::Usage:
      return abi::kInvalidArgument;
    case gflow::Code::NotFound:
      return abi::kNotFound;
    case gflow::Code::Exhausted:
      return abi::kInsufficientResources;
    case gflow::Code::WrongState:
      return abi::kInUse;
    default:
      return abi::kUnknown;
  }
}

std::size_t index_of(const SimDevice& device) {
  return static_cast<std::size_t>(&device - world().machine().devices.data());
}

/// That of compute instances of a profile such as "3g.40gb", or "1c.3g.40gb".
std::uint32_t compute_profile(const std::string& name) {
  const gflow::MigProfile profile = *gflow::parse_mig_profile(name);
  return profile.gpu_slices > 1 && profile.compute_slices == profile.gpu_slices ? 1 : 0;
}

}  // namespace

extern "C" {

abi::Return nvmlDeviceGetHandleByUUID(const char* uuid, abi::Handle* device) {
  if (const abi::Return wanted = world().entering(__func__); wanted != abi::kSuccess) return wanted;
  const auto& devices = world().machine().devices;
  const auto at = std::ranges::find_if(
      devices, [uuid](const SimDevice& one) { return one.device.uuid == uuid; });
  if (at == devices.end()) return abi::kNotFound;
  *device = world().handle_of(index_of(*at));
  return abi::kSuccess;
}

abi::Return nvmlDeviceGetGpuInstanceProfileInfoV(abi::Handle handle,
                                                 std::uint32_t number,
                                                 abi::GpuInstanceProfile* profile) {
  const Cut cut = enter_gpu(__func__, handle);
  if (cut.device == nullptr) return cut.code;
  if (profile->version != abi::kGpuInstanceProfileV2) return abi::kArgumentVersionMismatch;
  if (number >= cut.device->mig.kinds.size()) return abi::kInvalidArgument;
  const MigKind& kind = cut.device->mig.kinds[number];
  *profile = {.version = abi::kGpuInstanceProfileV2};
  profile->id = kFirstProfile + number;
  profile->slices = compute_slices(kind.profile);
  profile->instances = static_cast<std::uint32_t>(kind.most);
  profile->memory_mib = static_cast<std::uint64_t>(kind.memory.bytes) >> 20;
  const std::string name = "MIG " + kind.profile;
  std::memcpy(profile->name, name.c_str(), name.size() + 1);
  return abi::kSuccess;
}

abi::Return nvmlDeviceGetGpuInstancePossiblePlacements_v2(abi::Handle handle,
                                                          std::uint32_t profile,
                                                          abi::InstancePlacement* placements,
                                                          std::uint32_t* count) {
  const Cut cut = enter_gpu(__func__, handle);
  if (cut.device == nullptr) return cut.code;
  if (!may_change()) return abi::kNoPermission;
  const MigKind* kind = kind_at(*cut.device, profile);
  if (kind == nullptr) return abi::kInvalidArgument;
  if (placements != nullptr && *count < kind->starts.size()) return abi::kInsufficientSize;
  *count = static_cast<std::uint32_t>(kind->starts.size());
  if (placements == nullptr) return abi::kSuccess;
  for (const int start : kind->starts) {
    *placements++ = {static_cast<std::uint32_t>(start), static_cast<std::uint32_t>(kind->size)};
  }
  return abi::kSuccess;
}

abi::Return nvmlDeviceGetGpuInstances(abi::Handle handle,
                                      std::uint32_t profile,
                                      abi::Handle* instances,
                                      std::uint32_t* count) {
  const Cut cut = enter_gpu(__func__, handle);
  if (cut.device == nullptr) return cut.code;
  if (!may_change()) return abi::kNoPermission;
  const MigKind* kind = kind_at(*cut.device, profile);
  if (kind == nullptr) return abi::kInvalidArgument;
  *count = 0;
  for (const MigInstance& one : cut.device->mig.instances) {
    if (one.profile != kind->profile) continue;
    instances[(*count)++] = handle_of(index_of(*cut.device), one.id, kGpuInstance);
  }
  return abi::kSuccess;
}

abi::Return nvmlGpuInstanceGetInfo(abi::Handle handle, abi::GpuInstanceInfo* info) {
  const Cut cut = enter_instance(__func__, handle, kGpuInstance);
  if (cut.instance == nullptr) return cut.code;
  const auto& kinds = cut.device->mig.kinds;
  const auto kind = std::ranges::find(kinds, cut.instance->profile, &MigKind::profile);
  *info = {.device = world().handle_of(index_of(*cut.device)),
           .id = static_cast<std::uint32_t>(cut.instance->id),
           .profile = kFirstProfile + static_cast<std::uint32_t>(kind - kinds.begin()),
           .placement = {static_cast<std::uint32_t>(cut.instance->start),
                         static_cast<std::uint32_t>(cut.instance->size)}};
  return abi::kSuccess;
}

abi::Return nvmlDeviceCreateGpuInstanceWithPlacement(abi::Handle handle,
                                                     std::uint32_t profile,
                                                     const abi::InstancePlacement* placement,
                                                     abi::Handle* instance) {
  const Cut cut = enter_gpu(__func__, handle);
  if (cut.device == nullptr) return cut.code;
  if (!may_change()) return abi::kNoPermission;
  const MigKind* kind = kind_at(*cut.device, profile);
  if (kind == nullptr) return abi::kInvalidArgument;
  const std::size_t at = index_of(*cut.device);
  const auto made = gflow::devices::sim::make_instance(
      file(), cut.device->device.uuid, kind->profile, static_cast<int>(placement->start));
  if (!made) return code_of(made.error());
  *instance = handle_of(at, made->id, kGpuInstance);
  return world().load();
}

abi::Return nvmlGpuInstanceDestroy(abi::Handle handle) {
  const Cut cut = enter_instance(__func__, handle, kGpuInstance);
  if (cut.instance == nullptr) return cut.code;
  if (!may_change()) return abi::kNoPermission;
  const auto done =
      gflow::devices::sim::destroy_instance(file(), cut.device->device.uuid, cut.instance->id);
  return done ? world().load() : code_of(done.error());
}

/// One of a single compute slice, and one of all that the instance has.
abi::Return nvmlGpuInstanceGetComputeInstanceProfileInfo(abi::Handle handle,
                                                         std::uint32_t number,
                                                         std::uint32_t engines,
                                                         abi::ComputeInstanceProfile* profile) {
  const Cut cut = enter_instance(__func__, handle, kGpuInstance);
  if (cut.instance == nullptr) return cut.code;
  if (number > 1 || engines != abi::kSharedEngines) return abi::kInvalidArgument;
  const std::uint32_t all = compute_slices(cut.instance->profile);
  if (number == 1 && all == 1) return abi::kNotSupported;
  *profile = {.id = number, .slices = number == 0 ? 1 : all, .instances = number == 0 ? all : 1};
  return abi::kSuccess;
}

abi::Return nvmlGpuInstanceGetComputeInstances(abi::Handle handle,
                                               std::uint32_t profile,
                                               abi::Handle* instances,
                                               std::uint32_t* count) {
  const Cut cut = enter_instance(__func__, handle, kGpuInstance);
  if (cut.instance == nullptr) return cut.code;
  *count = 0;
  for (const SimSlice& slice : cut.device->slices) {
    if (slice.mig.gpu_instance != cut.instance->id) continue;
    if (profile != compute_profile(slice.mig.profile)) continue;
    instances[(*count)++] = handle_of(index_of(*cut.device), cut.instance->id, kComputeInstance);
  }
  return abi::kSuccess;
}

abi::Return nvmlGpuInstanceCreateComputeInstance(abi::Handle handle,
                                                 std::uint32_t profile,
                                                 abi::Handle* compute) {
  const Cut cut = enter_instance(__func__, handle, kGpuInstance);
  if (cut.instance == nullptr) return cut.code;
  if (profile != compute_profile(cut.instance->profile)) return abi::kInvalidArgument;
  const std::size_t at = index_of(*cut.device);
  const int id = cut.instance->id;
  const auto made = gflow::devices::sim::make_compute(file(), cut.device->device.uuid, id);
  if (!made) return code_of(made.error());
  *compute = handle_of(at, id, kComputeInstance);
  return world().load();
}

abi::Return nvmlComputeInstanceDestroy(abi::Handle handle) {
  const Cut cut = enter_instance(__func__, handle, kComputeInstance);
  if (cut.instance == nullptr) return cut.code;
  const auto done =
      gflow::devices::sim::destroy_compute(file(), cut.device->device.uuid, cut.instance->id);
  if (!done) return code_of(done.error());
  if (const abi::Return loaded = world().load(); loaded != abi::kSuccess) return loaded;
  return world().entering("nvmlComputeInstanceDestroy_done");  // what it says of having done it
}

}  // extern "C"
