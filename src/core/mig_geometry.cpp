// SPDX-License-Identifier: Apache-2.0
#include "core/mig_geometry.h"

#include <algorithm>
#include <cmath>

#include "core/mig_profile.h"

namespace gflow {
namespace {

/// A line of the guide, its memory in memory slices.
struct Row {
  int compute = 0;
  int memory = 0;
  const char* attributes = "";
  std::vector<int> starts;
};

/// A100, H100 and those after them: eight memory slices, seven of which have a compute slice.
const std::vector<Row>& rows_of_seven() {
  static const std::vector<Row> kRows = {
      {1, 1, "", {0, 1, 2, 3, 4, 5, 6}},
      {1, 1, "+me", {0, 1, 2, 3, 4, 5, 6}},
      {1, 2, "", {0, 2, 4, 6}},
      {2, 2, "", {0, 2, 4}},
      {3, 4, "", {0, 4}},
      {4, 4, "", {0}},
      {7, 8, "", {0}},
  };
  return kRows;
}

/// A30: four of each.
const std::vector<Row>& rows_of_four() {
  static const std::vector<Row> kRows = {
      {1, 1, "", {0, 1, 2, 3}},
      {1, 1, "+me", {0, 1, 2, 3}},
      {2, 2, "", {0, 2}},
      {2, 2, "+me", {0, 2}},
      {4, 4, "", {0}},
  };
  return kRows;
}

/// What a driver reports of it: a little less, in steps of 128 MiB (of an H100 the very amounts).
Memory memory_of(int slices, int of, Memory gpu) {
  constexpr std::int64_t kStep = std::int64_t{128} << 20;
  const std::int64_t steps = gpu.bytes * slices / of / kStep;
  return Memory{(steps - std::min(slices, 2)) * kStep};
}

}  // namespace

std::vector<MigKind> mig_kinds(std::string_view model, Memory memory) {
  const bool is_small = model.contains("A30");
  const int slices = is_small ? 4 : 8;
  const double gibibytes = std::ceil(static_cast<double>(memory.bytes) / 0x1p30);
  std::vector<MigKind> kinds;
  for (const Row& row : is_small ? rows_of_four() : rows_of_seven()) {
    const double named = gibibytes * row.memory / slices;
    MigProfile profile{.compute_slices = row.compute,
                       .gpu_slices = row.compute,
                       .gigabytes = static_cast<int>(std::lround(named)),
                       .attributes = row.attributes};
    const bool is_one = !profile.attributes.empty();
    kinds.push_back({.profile = mig_profile_text(profile),
                     .size = row.memory,
                     .starts = row.starts,
                     .most = is_one ? 1 : static_cast<int>(row.starts.size()),
                     .memory = memory_of(row.memory, slices, memory)});
  }
  return kinds;
}

Result<MigInstance> add_instance(MigGpu& gpu, const std::string& profile, int start) {
  const MigKind* kind = kind_of(gpu, profile);
  if (kind == nullptr || std::ranges::find(kind->starts, start) == kind->starts.end()) {
    return fail(Code::Usage, "Invalid Argument");
  }
  MigInstance made{.id = 1, .profile = profile, .start = start, .size = kind->size};
  int alike = 0;
  for (const MigInstance& one : gpu.instances) {
    if (one.profile == profile) ++alike;
    if ((one.slots() & made.slots()) != 0) alike = kind->most;
  }
  if (alike >= kind->most) return fail(Code::Exhausted, "Insufficient Resources");
  while (std::ranges::find(gpu.instances, made.id, &MigInstance::id) != gpu.instances.end()) {
    ++made.id;
  }
  gpu.instances.push_back(made);
  std::ranges::sort(gpu.instances, {}, &MigInstance::start);
  return made;
}

}  // namespace gflow
