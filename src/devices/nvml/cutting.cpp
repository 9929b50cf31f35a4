// SPDX-License-Identifier: Apache-2.0
#include "devices/nvml/cutting.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/text.h"
#include "devices/nvml/mig_room.h"
#include "devices/nvml/processes.h"

namespace gflow::devices::nvml {
namespace {

using slice_outcome::Made;
using slice_outcome::Refused;
using slice_outcome::Removed;
using slice_outcome::Unclear;

constexpr std::uint32_t kMaxComputeProfiles = 16;
constexpr std::uint32_t kMaxDevices = 64;
constexpr const char* kTaken = "somebody else has taken its place meanwhile";

/// A MIG device of the GPU.
struct MigHandle {
  abi::Handle handle = nullptr;
  std::string uuid;
  int gpu_instance = 0;
  std::uint32_t compute_instance = 0;
};

class CutOne {
 public:
  CutOne(const Library& library, const MadeSlice& slice) : library_(library), slice_(slice) {}

  SliceOutcome run() {
    if (const auto code = library_.call<abi::Init>("nvmlInit_v2"); code != abi::kSuccess) {
      return not_looked_at(slice_, said(code));
    }
    const abi::Return found =
        library_.call<abi::GetByText>("nvmlDeviceGetHandleByUUID", slice_.gpu.c_str(), &gpu_);
    if (found != abi::kSuccess) return not_looked_at(slice_, said(found));
    const auto profiles = instance_profiles(library_, gpu_);
    if (!profiles) return not_looked_at(slice_, profiles.error().message);
    const auto named = std::ranges::find(
        *profiles, slice_.profile, [](const InstanceProfile& one) { return one.kind.profile; });
    if (named == profiles->end()) return Refused{"this GPU has no such profile"};
    profile_ = *named;
    return slice_.stage == SliceStage::Making ? make() : remove();
  }

 private:
  [[nodiscard]] std::string said(abi::Return code) const {
    const std::string text = library_.error_text(code);
    if (code != abi::kNoPermission) return text;
    return fmt::format("{}: only root may cut a GPU, so run gflowd as a service of the system",
                       text);
  }

  /// The instance at the place, of the profile.
  [[nodiscard]] Result<std::optional<OpenInstance>> instance() const {
    for (const OpenInstance& one : GF_TRY(instances_of(library_, gpu_, profile_))) {
      if (one.facts.start == slice_.start) return one;
    }
    return std::nullopt;
  }

  /// One that is gone again is none; errors are others.
  [[nodiscard]] abi::Return read_device(std::uint32_t at, MigHandle& one) const {
    std::uint32_t instance = 0;
    std::array<char, abi::kUuidSize> uuid{};
    const auto size = static_cast<std::uint32_t>(uuid.size());
    abi::Return code =
        library_.call<abi::GetSlice>("nvmlDeviceGetMigDeviceHandleByIndex", gpu_, at, &one.handle);
    const auto then = [&code](auto call) {
      if (code == abi::kSuccess) code = call();
    };
    then([&] {
      return library_.call<abi::GetNumber>("nvmlDeviceGetGpuInstanceId", one.handle, &instance);
    });
    then([&] {
      return library_.call<abi::GetNumber>(
          "nvmlDeviceGetComputeInstanceId", one.handle, &one.compute_instance);
    });
    then([&] {
      return library_.call<abi::GetText>("nvmlDeviceGetUUID", one.handle, uuid.data(), size);
    });
    uuid.back() = '\0';
    one.uuid = printable(uuid.data());
    one.gpu_instance = static_cast<int>(instance);
    return code;
  }

  [[nodiscard]] Result<std::vector<MigHandle>> devices() const {
    std::uint32_t most = 0;
    abi::Return code = library_.call<abi::GetNumber>("nvmlDeviceGetMaxMigDeviceCount", gpu_, &most);
    if (code != abi::kSuccess) return fail(Code::Failure, said(code));
    std::vector<MigHandle> found;
    for (std::uint32_t at = 0; at < std::min(most, kMaxDevices); ++at) {
      MigHandle one;
      code = read_device(at, one);
      if (code == abi::kNotFound || code == abi::kInvalidArgument) continue;
      if (code != abi::kSuccess) return fail(Code::Failure, said(code));
      found.push_back(std::move(one));
    }
    return found;
  }

  [[nodiscard]] SliceOutcome made(int id) const {
    const auto all = devices();
    if (!all) return Unclear{all.error().message};
    const auto at = std::ranges::find(*all, id, &MigHandle::gpu_instance);
    if (at == all->end()) return Unclear{"the driver does not tell the UUID of the slice it made"};
    return Made{at->uuid, id};
  }

  SliceOutcome make() {
    auto there = instance();
    if (!there) return Unclear{there.error().message};
    if (!*there) {
      if (slice_.only_looks) return Refused{"nobody wants it any more"};
      const abi::InstancePlacement place{static_cast<std::uint32_t>(slice_.start),
                                         static_cast<std::uint32_t>(slice_.size)};
      abi::Handle handle = nullptr;
      const abi::Return code = library_.call<abi::CreateInstance>(
          "nvmlDeviceCreateGpuInstanceWithPlacement", gpu_, profile_.facts.id, &place, &handle);
      is_begun_here_ = code == abi::kSuccess;
      there = instance();
      if (!there) return Unclear{there.error().message};
      if (!*there) return Refused{said(code)};
      // A driver that says no has made none: somebody else was faster.
      const bool is_definite = code != abi::kSuccess && code != abi::kUnknown;
      if (is_definite && !slice_.again) return Refused{kTaken};
    } else if (!slice_.again) {
      return Refused{kTaken};
    }
    return make_compute(**there);
  }

  /// Of all of the GPU instance, so that it is one MIG device. One that has others is somebody
  /// else's.
  SliceOutcome make_compute(const OpenInstance& whole) {
    const auto profile = compute_profile(whole);
    if (!profile) return undo(whole, "it has no compute instance for all of it");
    const auto there = compute_instances(whole, *profile);
    if (!there) return Unclear{there.error().message};
    if (!there->empty()) return made(whole.facts.id);
    const auto all = devices();
    if (!all) return Unclear{all.error().message};
    const auto other = std::ranges::find(*all, whole.facts.id, &MigHandle::gpu_instance);
    if (other != all->end()) return Refused{kTaken};
    abi::Handle compute = nullptr;
    const abi::Return code = library_.call<abi::CreateCompute>(
        "nvmlGpuInstanceCreateComputeInstance", whole.handle, profile->id, &compute);
    if (code != abi::kSuccess) return undo(whole, said(code));
    return made(whole.facts.id);
  }

  /// What was there before may be somebody's who has just begun it.
  SliceOutcome undo(const OpenInstance& whole, const std::string& why) {
    if (!is_begun_here_) return Unclear{why};
    const abi::Return code =
        library_.call<abi::DestroyInstance>("nvmlGpuInstanceDestroy", whole.handle);
    if (code == abi::kSuccess) return Refused{why};
    return Unclear{fmt::format("{}; and what was begun stays: {}", why, said(code))};
  }

  [[nodiscard]] std::optional<abi::ComputeInstanceProfile> compute_profile(
      const OpenInstance& whole) const {
    for (std::uint32_t number = 0; number < kMaxComputeProfiles; ++number) {
      abi::ComputeInstanceProfile profile{};
      const abi::Return code =
          library_.call<abi::GetComputeProfile>("nvmlGpuInstanceGetComputeInstanceProfileInfo",
                                                whole.handle,
                                                number,
                                                abi::kSharedEngines,
                                                &profile);
      if (code == abi::kInvalidArgument) break;
      if (code == abi::kSuccess && profile.slices == profile_.facts.slices) return profile;
    }
    return std::nullopt;
  }

  [[nodiscard]] Result<std::vector<abi::Handle>> compute_instances(
      const OpenInstance& whole, const abi::ComputeInstanceProfile& profile) const {
    std::array<abi::Handle, kMaxDevices> handles{};
    auto count = static_cast<std::uint32_t>(handles.size());
    const abi::Return code = library_.call<abi::GetInstances>(
        "nvmlGpuInstanceGetComputeInstances", whole.handle, profile.id, handles.data(), &count);
    if (code != abi::kSuccess) return fail(Code::Failure, said(code));
    // Not in braces: iterators of such handles are handles, too.
    return std::vector<abi::Handle>(handles.begin(),
                                    handles.begin() + std::min(count, kMaxDevices));
  }

  SliceOutcome remove() {
    const auto there = instance();
    if (!there) return not_looked_at(slice_, there.error().message);
    const auto all = devices();
    if (!all) return not_looked_at(slice_, all.error().message);
    const auto device = std::ranges::find(*all, slice_.uuid, &MigHandle::uuid);
    // What is there with another UUID, or number, is another one.
    if (!*there || (*there)->facts.id != slice_.gpu_instance) return Removed{};
    const int id = slice_.gpu_instance;
    const auto in_it = std::ranges::count(*all, id, &MigHandle::gpu_instance);
    if (device == all->end()) {
      // One without a device was left by an earlier order; where there was none, by somebody else.
      return in_it == 0 && slice_.again ? destroy(**there) : SliceOutcome(Removed{});
    }
    if (device->gpu_instance != id || in_it > 1) {
      return Refused{"somebody else has made a compute instance in it"};
    }
    if (const auto why = why_used(*device); !why.empty()) return Refused{why};
    const auto profile = compute_profile(**there);
    if (!profile) return Refused{"the driver does not tell its compute instance"};
    const auto computes = compute_instances(**there, *profile);
    if (!computes || computes->size() != 1) {
      return Refused{"the driver does not tell its compute instance"};
    }
    const abi::Return code =
        library_.call<abi::DestroyInstance>("nvmlComputeInstanceDestroy", computes->front());
    if (code != abi::kSuccess) return not_removed(said(code));
    return destroy(**there);
  }

  /// A driver that fails may have done it all the same, and the rest is left to do then.
  [[nodiscard]] SliceOutcome not_removed(const std::string& why) const {
    const auto all = devices();
    const bool is_there =
        all && std::ranges::find(*all, slice_.uuid, &MigHandle::uuid) != all->end();
    return is_there ? SliceOutcome(Refused{why}) : SliceOutcome(Unclear{why});
  }

  [[nodiscard]] std::string why_used(const MigHandle& device) const {
    ProcessList list;
    const Instance place{static_cast<std::uint32_t>(device.gpu_instance), device.compute_instance};
    Processes processes = read_processes(library_, list, {device.handle, place});
    if (processes.code != abi::kSuccess) {
      processes = read_processes(library_, list, {gpu_, place, true});
    }
    if (processes.code != abi::kSuccess) return said(processes.code);
    if (processes.all.empty()) return "";
    return fmt::format("process {} uses it", processes.all.front().process.pid);
  }

  SliceOutcome destroy(const OpenInstance& whole) {
    const abi::Return code =
        library_.call<abi::DestroyInstance>("nvmlGpuInstanceDestroy", whole.handle);
    if (code == abi::kSuccess) return Removed{};
    return Unclear{said(code)};
  }

  const Library& library_;
  const MadeSlice& slice_;
  abi::Handle gpu_ = nullptr;
  InstanceProfile profile_;
  bool is_begun_here_ = false;  ///< the GPU instance was made by this process
};

}  // namespace

SliceOutcome not_looked_at(const MadeSlice& slice, const std::string& why) {
  return slice.again ? SliceOutcome(Unclear{why}) : SliceOutcome(Refused{why});
}

SliceOutcome cut(const Library& library, const MadeSlice& slice) {
  return CutOne(library, slice).run();
}

std::string to_line(const SliceOutcome& outcome) {
  if (const auto* made = std::get_if<Made>(&outcome)) {
    return fmt::format("made {} {}", made->uuid, made->gpu_instance);
  }
  if (const auto* refused = std::get_if<Refused>(&outcome)) {
    return fmt::format("refused {}", printable(refused->why));
  }
  if (const auto* unclear = std::get_if<Unclear>(&outcome)) {
    return fmt::format("unclear {}", printable(unclear->why));
  }
  return "removed";
}

SliceOutcome outcome_from(std::string_view line) {
  const auto space = line.find(' ');
  const std::string_view what = line.substr(0, space);
  const std::string_view rest = space == std::string_view::npos ? "" : line.substr(space + 1);
  if (what == "removed") return Removed{};
  if (what == "refused") return Refused{printable(rest)};
  if (what == "unclear") return Unclear{printable(rest)};
  const auto last = rest.rfind(' ');
  if (what == "made" && last != std::string_view::npos) {
    const auto id = parse_number(rest.substr(last + 1));
    if (id) return Made{printable(rest.substr(0, last)), static_cast<int>(*id)};
  }
  return Unclear{"gflow-mig ended without a word"};
}

}  // namespace gflow::devices::nvml
