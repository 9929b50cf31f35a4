// SPDX-License-Identifier: Apache-2.0
#include "devices/sim/slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/text.h"
#include "core/mig_geometry.h"
#include "core/mig_profile.h"
#include "devices/sim/field_values.h"
#include "devices/sim/placing.h"

namespace gflow::devices::sim {
namespace {

constexpr Range kInstance{0, 127};
constexpr int kComputeSlices = 7;  // of every GPU with MIG but the A30, which has four
constexpr int kMemorySlices = 8;

/// How many eighths of the GPU's memory a profile means by its gigabytes.
int memory_slices(const MigProfile& profile, Memory gpu) {
  const double gibibytes = std::ceil(static_cast<double>(gpu.bytes) / 0x1p30);
  const double slices = profile.gigabytes * kMemorySlices / gibibytes;
  return std::clamp(static_cast<int>(std::lround(slices)), 1, kMemorySlices);
}

/// What a driver reports of it: a little less, in steps of 128 MiB (of an H100 the very amounts).
Memory memory_of(const MigProfile& profile, Memory gpu) {
  constexpr std::int64_t kStep = std::int64_t{128} << 20;
  const int slices = memory_slices(profile, gpu);
  const std::int64_t steps = gpu.bytes * slices / kMemorySlices / kStep;
  return Memory{(steps - std::min(slices, 2)) * kStep};
}

/// The first number of a GPU instance of so many slices: drivers count them from there.
int first_instance(int slices) {
  if (slices > 4) return 0;
  if (slices > 2) return 1;
  return slices == 2 ? 3 : 7;
}

bool is_in(const SimSlice& slice, int instance) { return slice.mig.gpu_instance == instance; }

/// Compute slices that are taken of a GPU instance.
int taken_of(const std::vector<SimSlice>& slices, int instance) {
  int taken = 0;
  for (const SimSlice& one : slices) {
    if (is_in(one, instance)) taken += parse_mig_profile(one.mig.profile)->compute_slices;
  }
  return taken;
}

/// The GPU instance for a new slice: one of its size with room for a part of it, else a new one.
int instance_for(const std::vector<SimSlice>& slices, const MigProfile& profile) {
  int instance = first_instance(profile.gpu_slices);
  while (true) {
    const auto there = std::ranges::find_if(
        slices, [instance](const SimSlice& one) { return is_in(one, instance); });
    if (there == slices.end()) return instance;
    const MigProfile other = *parse_mig_profile(there->mig.profile);
    const int room = other.gpu_slices - taken_of(slices, instance);
    if (other.gpu_slices == profile.gpu_slices && profile.compute_slices <= room) return instance;
    ++instance;
  }
}

/// Of the GPU instances: one that is cut counts once.
int taken_of_gpu(const std::vector<SimSlice>& slices) {
  int taken = 0;
  for (std::size_t at = 0; at < slices.size(); ++at) {
    const int instance = slices[at].mig.gpu_instance;
    const auto before =
        std::ranges::subrange(slices.begin(), slices.begin() + static_cast<std::ptrdiff_t>(at));
    const bool again =
        std::ranges::any_of(before, [&](const SimSlice& one) { return is_in(one, instance); });
    if (!again) taken += parse_mig_profile(slices[at].mig.profile)->gpu_slices;
  }
  return taken;
}

/// "3g.20gb" stands for {profile: 3g.20gb}.
Yaml as_map(const Yaml& node) {
  if (std::holds_alternative<std::vector<Yaml::Entry>>(node.value)) return node;
  Yaml map = node;
  map.value = std::vector<Yaml::Entry>{{.key = "profile", .value = node}};
  return map;
}

Result<void> read_amounts(const Fields& fields,
                          const MigProfile& profile,
                          Memory gpu,
                          SimSlice& to) {
  to.memory_total = memory_of(profile, gpu);
  to.processes = GF_TRY(read_processes(fields));
  for (const SimProcess& one : to.processes) {
    to.memory_used += one.process.memory.value_or(Memory{});
  }
  to.memory_used = GF_TRY(fields.memory("memory_used")).value_or(to.memory_used);
  if (to.memory_used <= to.memory_total) return {};
  return fields.error("memory_used",
                      fmt::format("{} used is more than the {} of the slice",
                                  memory_text(to.memory_used),
                                  memory_text(to.memory_total)));
}

Result<SimSlice> read_slice(const Fields& fields, const std::vector<SimSlice>& before, Memory gpu) {
  const std::string text = GF_TRY(fields.text("profile")).value_or("");
  const auto profile = parse_mig_profile(text);
  if (!profile) {
    return fields.error("profile",
                        fmt::format("'{}' is no MIG profile, such as 3g.20gb", printable(text)));
  }
  SimSlice made;
  made.uuid = GF_TRY(read_uuid(fields)).value_or("");
  made.mig.profile = mig_profile_text(*profile);
  made.mig.gpu_instance = instance_for(before, *profile);
  GF_CHECK(take_number(fields, "gpu_instance", kInstance, made.mig.gpu_instance));
  made.mig.compute_instance = static_cast<int>(std::ranges::count_if(
      before, [&](const SimSlice& one) { return is_in(one, made.mig.gpu_instance); }));
  GF_CHECK(take_number(fields, "compute_instance", kInstance, made.mig.compute_instance));
  GF_CHECK(read_amounts(fields, *profile, gpu, made));
  return made;
}

}  // namespace

Result<std::vector<SimSlice>> read_slices(const Fields& gpu, const SimDevice& made) {
  std::vector<SimSlice> slices;
  const std::vector<Yaml> nodes = GF_TRY(gpu.list("mig"));
  if (gpu.find("mig") != nullptr && made.device.vendor != "nvidia") {
    return gpu.error("mig", "only GPUs of NVIDIA have MIG");
  }
  if (nodes.empty()) return slices;
  const auto too_many = [&gpu] {
    return gpu.error("mig", fmt::format("a GPU is cut into {} slices at most", kComputeSlices));
  };
  if (std::ssize(nodes) > kComputeSlices) return too_many();
  const Memory all = made.device.memory_total.value_or(Memory{});
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    const Yaml map = as_map(nodes[at]);
    const std::string path = fmt::format("{}[{}]", gpu.path_of("mig"), at);
    const Fields fields = GF_TRY(Fields::of(
        map,
        gpu.file(),
        path,
        {"profile", "uuid", "gpu_instance", "compute_instance", "memory_used", "processes"}));
    slices.push_back(GF_TRY(read_slice(fields, slices, all)));
  }
  if (taken_of_gpu(slices) > kComputeSlices) return too_many();
  const auto place = [](const SimSlice& one) {
    return std::tuple(one.mig.gpu_instance, one.mig.compute_instance);
  };
  std::ranges::sort(slices, {}, place);
  if (std::ranges::adjacent_find(slices, {}, place) != slices.end()) {
    return gpu.error("mig", "two slices have the same instances");
  }
  return slices;
}

void name_slices(SimDevice& device) {
  for (SimSlice& slice : device.slices) {
    slice.mig.parent = device.device.uuid;
    if (!slice.uuid.empty()) continue;
    slice.uuid = made_up_uuid("MIG",
                              fmt::format("{}/{}/{}/{}",
                                          slice.mig.parent,
                                          slice.mig.profile,
                                          slice.mig.gpu_instance,
                                          slice.mig.compute_instance));
  }
}

/// Those first that have the fewest places, and at the last place that is free.
void place_slices(SimDevice& device) {
  MigGpu& gpu = device.mig;
  gpu.uuid = device.device.uuid;
  gpu.model = device.device.model;
  gpu.kinds = mig_kinds(gpu.model, device.device.memory_total.value_or(Memory{}));
  std::vector<MigInstance> there;
  for (const SimSlice& slice : device.slices) {
    MigProfile whole = *parse_mig_profile(slice.mig.profile);
    whole.compute_slices = whole.gpu_slices;
    const bool is_known =
        std::ranges::find(there, slice.mig.gpu_instance, &MigInstance::id) != there.end();
    if (!is_known)
      there.push_back({.id = slice.mig.gpu_instance, .profile = mig_profile_text(whole)});
  }
  const auto places = [&gpu](const MigInstance& one) {
    const MigKind* kind = kind_of(gpu, one.profile);
    return kind == nullptr ? std::size_t{0} : kind->starts.size();
  };
  std::ranges::stable_sort(there, {}, places);
  for (const MigInstance& one : there) {
    const MigKind* kind = kind_of(gpu, one.profile);
    bool is_placed = false;
    for (std::size_t at = places(one); at > 0 && !is_placed; --at) {
      const auto made = add_instance(gpu, one.profile, kind->starts[at - 1]);
      is_placed = made.has_value();
      if (!is_placed) continue;
      std::ranges::find(gpu.instances, made->start, &MigInstance::start)->id = one.id;
    }
    if (!is_placed) gpu.unread = fmt::format("a slice {} has no place on it", one.profile);
  }
}

std::string slice_model(const Device& gpu, const SimSlice& slice) {
  return slice_name(gpu.model, slice.mig.profile);
}

}  // namespace gflow::devices::sim
