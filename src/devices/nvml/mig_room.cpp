// SPDX-License-Identifier: Apache-2.0
#include "devices/nvml/mig_room.h"

#include <algorithm>
#include <array>

#include "core/mig_profile.h"

namespace gflow::devices::nvml {
namespace {

constexpr std::uint32_t kMaxProfiles = 64;  // 18 are numbered today
constexpr std::size_t kMaxPlacements = 32;
constexpr std::size_t kMaxInstances = 32;

std::unexpected<Error> driver_error(const Library& library, abi::Return code) {
  const Code kind = code == abi::kNoPermission ? Code::Permission : Code::Failure;
  return fail(kind, library.error_text(code));
}

abi::Return read_profile(const Library& library,
                         abi::Handle gpu,
                         std::uint32_t number,
                         abi::GpuInstanceProfile& facts) {
  facts = {};
  facts.version = abi::kGpuInstanceProfileV2;
  const abi::Return code = library.call<abi::GetInstanceProfile>(
      "nvmlDeviceGetGpuInstanceProfileInfoV", gpu, number, &facts);
  facts.name[sizeof facts.name - 1] = '\0';
  return code;
}

/// Nothing of one that cannot be asked for by name, or has no place.
Result<std::optional<MigKind>> kind_from(const Library& library,
                                         abi::Handle gpu,
                                         const abi::GpuInstanceProfile& facts) {
  const auto named = find_mig_profile(facts.name);
  if (!named) return std::nullopt;
  MigKind kind{.profile = mig_profile_text(named->profile),
               .most = static_cast<int>(facts.instances),
               .memory = Memory::mib(static_cast<std::int64_t>(facts.memory_mib))};
  std::array<abi::InstancePlacement, kMaxPlacements> places{};
  auto count = static_cast<std::uint32_t>(places.size());
  const abi::Return code = library.call<abi::GetPlacements>(
      "nvmlDeviceGetGpuInstancePossiblePlacements_v2", gpu, facts.id, places.data(), &count);
  if (code == abi::kNotSupported) return std::nullopt;
  if (code != abi::kSuccess) return driver_error(library, code);
  for (std::uint32_t at = 0; at < std::min<std::uint32_t>(count, kMaxPlacements); ++at) {
    const auto start = static_cast<int>(places.at(at).start);
    kind.size = static_cast<int>(places.at(at).size);
    if (kind.size < 1 || start < 0 || start + kind.size > kMaxMigSlots) return std::nullopt;
    kind.starts.push_back(start);
  }
  std::ranges::sort(kind.starts);
  return kind.starts.empty() ? std::nullopt : std::optional(std::move(kind));
}

}  // namespace

Result<std::vector<InstanceProfile>> instance_profiles(const Library& library, abi::Handle gpu) {
  std::vector<InstanceProfile> profiles;
  for (std::uint32_t number = 0; number < kMaxProfiles; ++number) {
    InstanceProfile one;
    const abi::Return code = read_profile(library, gpu, number, one.facts);
    if (code == abi::kInvalidArgument) break;  // there are no more
    if (code == abi::kNotSupported) continue;
    if (code != abi::kSuccess) return driver_error(library, code);
    auto kind = GF_TRY(kind_from(library, gpu, one.facts));
    if (!kind) continue;
    one.kind = *std::move(kind);
    profiles.push_back(std::move(one));
  }
  return profiles;
}

Result<std::vector<OpenInstance>> instances_of(const Library& library,
                                               abi::Handle gpu,
                                               const InstanceProfile& profile) {
  std::array<abi::Handle, kMaxInstances> handles{};
  auto count = static_cast<std::uint32_t>(handles.size());
  const abi::Return code = library.call<abi::GetInstances>(
      "nvmlDeviceGetGpuInstances", gpu, profile.facts.id, handles.data(), &count);
  if (code == abi::kNotSupported) return std::vector<OpenInstance>{};
  if (code != abi::kSuccess) return driver_error(library, code);
  std::vector<OpenInstance> found;
  for (std::uint32_t at = 0; at < std::min<std::uint32_t>(count, kMaxInstances); ++at) {
    abi::GpuInstanceInfo info{};
    const abi::Return told =
        library.call<abi::GetInstanceInfo>("nvmlGpuInstanceGetInfo", handles.at(at), &info);
    if (told == abi::kNotFound) continue;  // gone meanwhile
    if (told != abi::kSuccess) return driver_error(library, told);
    found.push_back({handles.at(at),
                     {.id = static_cast<int>(info.id),
                      .profile = profile.kind.profile,
                      .start = static_cast<int>(info.placement.start),
                      .size = static_cast<int>(info.placement.size)}});
  }
  return found;
}

void read_room(const Library& library, abi::Handle gpu, DeviceReport& report) {
  const auto profiles = instance_profiles(library, gpu);
  if (!profiles) {
    report.room_unread = profiles.error().message;
    return;
  }
  for (const InstanceProfile& profile : *profiles) {
    const auto instances = instances_of(library, gpu, profile);
    if (!instances) {
      report.room_unread = instances.error().message;
      return;
    }
    report.kinds.push_back(profile.kind);
    for (const OpenInstance& one : *instances) report.instances.push_back(one.facts);
  }
  std::ranges::sort(report.instances, {}, &MigInstance::start);
}

}  // namespace gflow::devices::nvml
