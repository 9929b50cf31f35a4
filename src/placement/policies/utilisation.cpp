// SPDX-License-Identifier: Apache-2.0
#include "placement/policies/utilisation.h"

#include <algorithm>

namespace gflow::placement {
namespace {

/// Part of the whole in thousandths, 0 of nothing.
int permille(std::int64_t part, std::int64_t whole) {
  if (whole <= 0) return 0;
  return static_cast<int>(std::clamp<std::int64_t>(part, 0, whole) * kPermille / whole);
}

Term term(std::string_view name, int percent, int merit) {
  return {.name = std::string(name), .weight = percent / 100.0, .value = merit / 10.0};
}

}  // namespace

Utilisation utilisation_with(const Question& question, std::span<const int> devices) {
  const std::vector<DeviceState>& states = question.ledger.state(question.node.index).devices;
  const std::vector<std::int32_t> free = free_after(question, devices);
  std::int64_t compute = 0;
  std::int64_t left = 0;
  std::int64_t stranded = 0;
  Memory memory;
  Memory memory_free;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (!states[i].usable) continue;
    compute += Share::kWholeParts;
    left += free[i];
    if (free[i] < Share::kWholeParts) stranded += free[i];
    memory += states[i].memory;
    memory_free += states[i].memory_free;
  }
  for (const int device : devices) {
    const Memory all = states[static_cast<std::size_t>(device)].memory;
    memory_free -= question.ledger.reserve_on(question.demand, all);
  }
  const NodeView& node = question.node;
  Utilisation with_job;
  with_job.gpu = permille(compute - left, compute);
  with_job.memory = memory == Memory{}
                        ? with_job.gpu
                        : permille((memory - memory_free).bytes >> 20, memory.bytes >> 20);
  with_job.cpu = permille(node.milli_cpus - node.milli_cpus_free + question.demand.milli_cpus,
                          node.milli_cpus);
  with_job.fragmentation = permille(stranded, compute);
  return with_job;
}

Score weighed(const Merits& merits, const PolicyOptions& weights) {
  return weights.gpu_weight * merits.gpu + weights.memory_weight * merits.memory +
         weights.cpu_weight * merits.cpu + weights.fragmentation_weight * merits.fragmentation;
}

std::vector<Term> terms_of(const Merits& merits, const PolicyOptions& weights) {
  return {term("gpu", weights.gpu_weight, merits.gpu),
          term("memory", weights.memory_weight, merits.memory),
          term("cpu", weights.cpu_weight, merits.cpu),
          term("fragmentation", weights.fragmentation_weight, merits.fragmentation)};
}

}  // namespace gflow::placement
