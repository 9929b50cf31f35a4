// SPDX-License-Identifier: Apache-2.0
#include "daemon/gpu_overuse.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace gflow::daemon {
namespace {

/// The number of the attempt a job is at; 0 if none is under way.
int attempt_under_way(const engine::State& state, JobId id) {
  const Job* job = state.find(id);
  return job != nullptr && is_active(*job) ? attempt_of(*job)->number : 0;
}

std::string overuse_text(const Job& job, const GpuMemoryUse& use) {
  return fmt::format("job {} ({}, {}) uses {} of the memory of GPU {}; {} is reserved for it",
                     job.id.value,
                     printable(job.spec.user.name),
                     printable(job.spec.name),
                     memory_text(use.used, use.reserved),
                     use.gpu,
                     memory_text(use.reserved));
}

}  // namespace

std::vector<std::string> GpuOveruse::news(const engine::State& state) {
  std::erase_if(told_, [&](const auto& attempt) {
    return attempt_under_way(state, attempt.first) != attempt.second;
  });
  std::vector<std::string> sentences;
  const auto look_at = [&](JobId id) {
    const int attempt = attempt_under_way(state, id);
    if (attempt == 0 || told_.contains({id, attempt})) return;
    const Job& job = *state.find(id);
    const std::vector<GpuMemoryUse> memory = state.gpu_memory_of(job);
    const auto over = std::ranges::find_if(memory, &GpuMemoryUse::is_over);
    if (over == memory.end()) return;
    told_.emplace(id, attempt);
    sentences.push_back(overuse_text(job, *over));
  };
  for (const auto& [name, record] : state.nodes()) {
    for (const Device& device : record.machine.devices) {
      for (const JobUse& use : device.uses) look_at(JobId(use.job));
    }
  }
  return sentences;
}

}  // namespace gflow::daemon
