// SPDX-License-Identifier: Apache-2.0
#include "slurm/gpu_kinds.h"

#include <algorithm>

#include "core/catalogue.h"

namespace gflow::slurm {
namespace {

std::int64_t count_of(const Node& node, std::string_view kind) {
  std::int64_t count = 0;
  for (const Gres& one : node.gres) count += one.kind == kind ? one.count : 0;
  return count;
}

/// What the nodes of a kind have in common.
void note_parts(GpuKind& kind, const Node& node, bool is_first) {
  const std::int64_t gpus = count_of(node, "gpu");
  std::string parts;
  std::int64_t of_gpu = 0;
  for (const char* name : {"shard", "mps"}) {
    if (of_gpu > 0 || gpus == 0) continue;
    of_gpu = count_of(node, name) / gpus;
    if (of_gpu > 0) parts = name;
  }
  if (is_first) {
    kind.parts = parts;
    kind.parts_of_gpu = of_gpu;
    return;
  }
  kind.is_uneven = kind.is_uneven || kind.parts != parts || kind.parts_of_gpu != of_gpu;
  if (of_gpu > 0 && (kind.parts_of_gpu == 0 || of_gpu < kind.parts_of_gpu)) {
    kind.parts = parts;
    kind.parts_of_gpu = of_gpu;
  }
}

}  // namespace

bool GpuKind::is_slice() const { return catalogue::is_slice(model); }

std::vector<GpuKind> gpu_kinds(const std::vector<Node>& nodes) {
  std::vector<GpuKind> kinds;
  for (const Node& node : nodes) {
    for (const Gres& gres : node.gres) {
      if (gres.kind != "gpu" || gres.count == 0) continue;
      auto at = std::ranges::find(kinds, gres.type, &GpuKind::type);
      const bool is_first = at == kinds.end();
      if (is_first) {
        at = kinds.insert(at, {gres.type, catalogue::device_model("", gres.type, {})});
      }
      note_parts(*at, node, is_first);
    }
  }
  return kinds;
}

std::int64_t parts_of_gpu(const std::vector<GpuKind>& kinds,
                          std::string_view parts,
                          std::string_view type) {
  std::int64_t fewest = 0;
  for (const GpuKind& kind : kinds) {
    const bool is_its = kind.parts == parts && (type.empty() || kind.type == type);
    if (is_its && (fewest == 0 || kind.parts_of_gpu < fewest)) fewest = kind.parts_of_gpu;
  }
  return fewest;
}

}  // namespace gflow::slurm
