// SPDX-License-Identifier: Apache-2.0
#include "engine/choose.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "core/cpu_list.h"

namespace gflow::engine {
namespace {

std::set<int> numa_nodes_of(const Machine& machine, const std::vector<int>& gpus) {
  std::set<int> nodes;
  for (const int gpu : gpus) {
    const auto place = static_cast<std::size_t>(gpu);
    if (place < machine.topology.numa.size() && machine.topology.numa[place]) {
      nodes.insert(*machine.topology.numa[place]);
      continue;
    }
    const auto at = std::ranges::find(machine.devices, gpu, &Device::index);
    if (at != machine.devices.end() && at->numa_node) nodes.insert(*at->numa_node);
  }
  return nodes;
}

}  // namespace

const placement::PolicyEntry& policy_entry(const std::string& name) {
  const placement::PolicyEntry* entry = placement::find_policy(name);
  return entry == nullptr ? placement::policies().front() : *entry;
}

void Index::set_policy(Policy next) {
  const bool same = placer != nullptr && next.placement == policy.placement &&
                    next.placement_options == policy.placement_options;
  const bool reordered = placer != nullptr &&
                         (next.order.order != policy.order.order || next.preempt != policy.preempt);
  if (reordered) unlink_waiting();
  policy = std::move(next);
  fair.set_rules(policy.fair_share);
  ++knowledge;
  incumbents.clear();
  if (reordered) link_waiting();
  ledger.set_rules(policy.sharing);
  fronts.open_all();
  if (same) return;
  placer = std::make_unique<placement::Placer>(
      policy_entry(policy.placement).make(policy.placement_options));
  learn_traffic();
}

/// What is expected next is learned from who came, whether places change hands from who came and
/// ended.
void Index::learn_traffic() {
  constexpr std::size_t kLearnedFrom = 10'000;
  const std::vector<JobId> newest = jobs.last_ids(kLearnedFrom);
  std::multiset<std::chrono::milliseconds> ended_at;
  JobTable::Reader departures(jobs);  // those that wait stay packed
  for (const JobId id : newest) {
    const auto seen = departures.at(id);
    const auto* end =
        seen && seen->job != nullptr ? std::get_if<Ended>(&seen->job->state) : nullptr;
    if (end != nullptr && end->attempt) ended_at.insert(end->lived);
  }
  const auto depart = [&](auto until) {
    for (auto at = ended_at.begin(); at != until; at = ended_at.erase(at)) placer->departed(ledger);
  };
  JobTable::Reader arrivals(jobs);
  for (const JobId id : newest) {
    const auto job = arrivals.at(id);
    depart(ended_at.lower_bound(job->lived));
    placer->arrived(ledger, demand_of(*job->spec));
  }
  depart(ended_at.end());
}

std::optional<Chosen> Index::choose(placement::DemandIndex demand,
                                    const std::vector<placement::NodeIndex>& left_out) {
  return choose(demand, left_out, nullptr);
}

std::optional<Chosen> Index::choose(placement::DemandIndex demand,
                                    const std::vector<placement::NodeIndex>& left_out,
                                    const std::vector<placement::NodeIndex>* among) {
  auto choice = among == nullptr ? placer->choose(ledger, demand, left_out)
                                 : placer->choose_among(ledger, demand, *among, left_out);
  if (!choice) return std::nullopt;
  std::string because;
  for (const DeviceReason& reason : choice->reasons) {
    because = kept_device_reason(reason);
    if (!because.empty()) break;
  }
  return Chosen{std::move(choice->placements), std::move(because)};
}

std::vector<int> choose_cpus(const Index& index,
                             const Request& request,
                             const placement::Placement& there) {
  const auto node = index.nodes.find(index.ledger.node(there.node).name);
  if (request.cpus <= 0 || there.devices.empty() || node == index.nodes.end()) return {};
  const Machine& machine = node->second.machine;
  const std::set<int> near = numa_nodes_of(machine, there.devices);
  const auto taken = index.cpus_taken.find(there.node);
  const auto is_free = [&](int cpu) {
    return taken == index.cpus_taken.end() || !taken->second.contains(cpu);
  };
  std::vector<int> chosen;
  std::vector<int> further;
  for (const NumaCpus& numa : machine.topology.cpus) {
    const auto cpus = parse_cpu_list(numa.cpus);
    if (!cpus) continue;
    std::vector<int>& into = near.contains(numa.node) ? chosen : further;
    std::ranges::copy_if(*cpus, std::back_inserter(into), is_free);
  }
  chosen.insert(chosen.end(), further.begin(), further.end());
  const auto count = static_cast<std::size_t>(request.cpus);
  if (chosen.size() < count) return {};
  chosen.resize(count);
  std::ranges::sort(chosen);
  return chosen;
}

}  // namespace gflow::engine
