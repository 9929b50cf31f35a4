// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "engine/index.h"
#include "engine/machine_node.h"

/// What active jobs hold: the ledger and the indexes beside it.
namespace gflow::engine {

using placement::NodeIndex;
using placement::Placement;
using placement::Presence;

namespace {

Presence presence_of(const Job& job) {
  const auto* running = std::get_if<Running>(&job.state);
  return running != nullptr && running->suspended ? Presence::Standing : Presence::Working;
}

}  // namespace

PassingDemand::PassingDemand(Index& index, const Request& request)
    : index_(index),
      before_(index.ledger.demands()),
      demand_(index.ledger.intern(placement::demand_of(request))) {}

PassingDemand::~PassingDemand() {
  if (index_.ledger.demands() == before_) return;
  index_.placer->forget_last_demand(index_.ledger);
  index_.ledger.forget_last_demand();
}

placement::DemandIndex Index::demand_of(const JobSpec& spec) {
  return ledger.intern(placement::demand_of(spec.request));
}

Shape Index::shape_of(const JobSpec& spec) {
  const auto bound = spec.time_limit ? *spec.time_limit + spec.grace : std::chrono::seconds::zero();
  return {demand_of(spec), bound};
}

std::vector<Placement> Index::placements_of(const Attempt& attempt) {
  std::vector<Placement> placements;
  const auto add = [&](const Allocation& allocation) {
    auto node = ledger.find(allocation.node);
    if (!node) node = ledger.put({.name = allocation.node, .ready = false});
    placements.push_back({*node, allocation.gpus});
  };
  add(attempt.allocation);
  for (const Allocation& peer : attempt.peers) add(peer);
  return placements;
}

void Index::link_active(const Job& job, const Attempt& attempt) {
  const placement::DemandIndex demand = demand_of(job.spec);
  for (const Placement& placement : placements_of(attempt)) {
    ledger.take(demand, placement, presence_of(job));
    for (const int gpu : placement.devices) holders[{placement.node, gpu}].insert(job.id);
  }
  for (const int cpu : attempt.allocation.cpus) cpus_taken.insert(cpu);
  if (presence_of(job) == Presence::Standing) standing.insert({job.submitted, job.id});
  if (job.spec.preemption != Preemption::None) preemptible.insert(job.id);
  fair.hold(job.spec.user.uid, parts_of(job.spec.request));
  if (const auto end = latest_end(job)) ends.emplace(*end, job.id);
  if (Group* own = group(job)) {
    ++own->active;
    balance(*own);
  }
}

void Index::unlink_active(const Job& job, const Attempt& attempt) {
  const placement::DemandIndex demand = demand_of(job.spec);
  for (const Placement& placement : placements_of(attempt)) {
    ledger.give_back(demand, placement, presence_of(job));
    for (const int gpu : placement.devices) {
      const auto at = holders.find({placement.node, gpu});
      at->second.erase(job.id);
      if (at->second.empty()) holders.erase(at);
    }
  }
  for (const int cpu : attempt.allocation.cpus) cpus_taken.erase(cpus_taken.find(cpu));
  standing.erase({job.submitted, job.id});
  preemptible.erase(job.id);
  incumbents.erase(job.id);
  fair.hold(job.spec.user.uid, -parts_of(job.spec.request));
  if (const auto end = latest_end(job)) ends.erase({*end, job.id});
  if (Group* own = group(job)) {
    --own->active;
    balance(*own);
  }
}

/// Memory that running jobs use of each device comes with the machine; what of it is theirs by
/// declaration is known here.
void Index::put_machine() {
  const auto declared = [this](const JobUse& use, const Device& device) -> std::optional<Memory> {
    const Job* job = find(JobId(use.job));
    if (job == nullptr || !is_active(*job)) return std::nullopt;
    return ledger.reserve_on(placement::demand_of(job->spec.request),
                             device.memory_total.value_or(Memory{}));
  };
  put_node(node_of(machine, drains, policy, declared));
}

void Index::put_node(placement::Node node) {
  const auto failing = health.find(node.name);
  node.healthy = failing == health.end() || !is_closed(failing->second, now.mono);
  const auto known = ledger.find(node.name);
  if (known && ledger.node(*known) == node) return;
  ledger.put(std::move(node));
}

Totals Index::totals() const {
  Totals totals;
  for (NodeIndex index = 0; index < ledger.size(); ++index) {
    const placement::Node& node = ledger.node(index);
    const placement::NodeState& state = ledger.state(index);
    totals.gpus += static_cast<int>(node.devices.size());
    totals.gpus_free += static_cast<int>(
        std::ranges::count_if(state.devices, [](const placement::DeviceState& device) {
          return device.usable && device.users == 0 && device.standing == 0;
        }));
    totals.cpus += static_cast<int>(node.milli_cpus / 1000);
    totals.cpus_free += static_cast<int>(std::max<std::int64_t>(0, state.milli_cpus_free) / 1000);
    totals.memory += node.memory;
    totals.memory_free += std::max(Memory{}, state.memory_free);
  }
  return totals;
}

}  // namespace gflow::engine
