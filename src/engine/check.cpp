// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>

#include "engine/index.h"

namespace gflow::engine {
namespace {

/// No device held twice, no more held than there is, every attempt counted.
std::string check_holdings(const Index& index) {
  std::map<int, JobId> seen;
  Amounts held;
  for (const auto& [id, job] : index.jobs) {
    if (!is_active(job)) continue;
    held += amounts_of(job.spec.request);
    const Attempt& attempt = *attempt_of(job);
    if (attempt.allocation.gpus.size() != static_cast<std::size_t>(job.spec.request.gpus)) {
      return fmt::format("job {} asked for {} GPUs and holds {}",
                         id.value,
                         job.spec.request.gpus,
                         attempt.allocation.gpus.size());
    }
    for (const int gpu : attempt.allocation.gpus) {
      const auto [other, first] = seen.emplace(gpu, id);
      if (!first) {
        return fmt::format("GPU {} is held by jobs {} and {}", gpu, other->second.value, id.value);
      }
    }
  }
  if (seen != index.holders) return "the holders of devices are not what the jobs say";
  if (held.cpus != index.held.cpus || held.memory != index.held.memory ||
      held.gpus != index.held.gpus) {
    return "the amounts held are not the sum of the active jobs";
  }
  return {};
}

}  // namespace

std::string State::check() const {
  const Index& index = *index_;
  if (std::string wrong = check_holdings(index); !wrong.empty()) return wrong;

  Index fresh;
  fresh.policy = index.policy;
  fresh.boot_id = index.boot_id;
  fresh.now = index.now;
  fresh.machine = index.machine;
  fresh.jobs = index.jobs;
  for (const auto& [name, group] : index.groups) fresh.groups[name].limit = group.limit;
  fresh.recount();
  for (const auto& [id, job] : fresh.jobs) fresh.link(job);

  if (fresh.by_status != index.by_status) return "the index by status is wrong";
  if (fresh.ready != index.ready) return "the index of jobs that may start is wrong";
  if (fresh.begin_later != index.begin_later) return "the index of begin times is wrong";
  if (fresh.backoff != index.backoff) return "the index of launch back-offs is wrong";
  if (fresh.dependents != index.dependents) return "the index of dependents is wrong";
  if (fresh.ends != index.ends) return "the index of ends is wrong";
  if (fresh.ended != index.ended) return "the index of ended jobs is wrong";
  if (!(fresh.totals == index.totals)) return "the totals are wrong";
  for (const auto& [name, group] : index.groups) {
    const Group& other = fresh.groups[name];
    if (group.active != other.active) return fmt::format("group '{}' counts wrong", name);
    if (group.queued != other.queued || group.parked != other.parked) {
      return fmt::format("group '{}' has the wrong jobs in the queue", name);
    }
  }
  for (const auto& [id, job] : index.jobs) {
    if (id >= index.next_id) return fmt::format("job {} has an id not given out yet", id.value);
  }
  return {};
}

}  // namespace gflow::engine
