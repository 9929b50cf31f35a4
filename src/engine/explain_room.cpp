// SPDX-License-Identifier: Apache-2.0
#include "engine/explain_room.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/kept_sentence.h"
#include "base/translate.h"
#include "core/catalogue.h"
#include "engine/cutting.h"
#include "engine/feasible.h"
#include "engine/holders.h"

namespace gflow::engine {

using placement::Ledger;
using placement::NodeIndex;

namespace {

/// Whether the device would do for the demand if nobody were on it.
bool would_do(const Index& index, const placement::Demand& wanted, DeviceKey key) {
  const auto& devices = index.ledger.node(key.node).devices;
  const auto place = static_cast<std::size_t>(key.gpu);
  return place < devices.size() && placement::wants(wanted, devices[place]) &&
         devices[place].memory >= wanted.gpu_memory;
}

/// The jobs on devices of the node that would do, each with those it has of them.
std::vector<blocker::Holder> device_holders(const Index& index,
                                            const placement::Demand& wanted,
                                            NodeIndex node,
                                            Now now) {
  std::map<JobId, std::vector<int>> held;
  for (auto at = index.holders.lower_bound({node, 0});
       at != index.holders.end() && at->first.node == node;
       ++at) {
    if (!would_do(index, wanted, at->first)) continue;
    for (const JobId id : at->second) held[id].push_back(at->first.gpu);
  }
  std::vector<blocker::Holder> found;
  for (auto& [id, gpus] : held) {
    if (found.size() == kMaxHolders) break;
    found.push_back(holder_of(index, *index.find(id), std::move(gpus), now));
  }
  return found;
}

/// Whether it would do for the demand if it were the GPU it is cut from.
bool is_slice_of_one(const placement::Demand& wanted, const placement::DeviceFacts& device) {
  if (!catalogue::is_slice(device.model) || device.vendor != "nvidia") return false;
  const std::string gpu = catalogue::gpu_of_slice(device.model);
  return placement::wants(wanted, device.vendor, gpu);
}

/// MIG devices of a node that has nothing else for the demand, one of each profile.
std::vector<blocker::Unusable> slices_instead(const Index& index,
                                              const placement::Demand& wanted,
                                              NodeIndex node) {
  std::vector<blocker::Unusable> found;
  std::vector<std::string> profiles;
  const auto& devices = index.ledger.node(node).devices;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto gpu = static_cast<int>(i);
    if (would_do(index, wanted, {node, gpu})) return {};
    const bool is_new = std::ranges::find(profiles, devices[i].model) == profiles.end();
    const bool is_held = index.holders.contains({node, gpu});
    if (!is_new || is_held || !is_slice_of_one(wanted, devices[i])) continue;
    profiles.push_back(devices[i].model);
    found.push_back({gpu,
                     tr_format("it is a MIG device, for jobs that request '1({})'",
                               catalogue::profile_of(devices[i].model)),
                     false,
                     "",
                     {}});
  }
  return found;
}

/// Devices of the node that would do, but that no job can have now.
std::vector<blocker::Unusable> unusable(const Index& index,
                                        const placement::Demand& wanted,
                                        NodeIndex node) {
  std::vector<blocker::Unusable> found = slices_instead(index, wanted, node);
  const auto record = index.nodes.find(index.ledger.node(node).name);
  if (record == index.nodes.end()) return found;
  for (const Device& device : record->second.machine.devices) {
    if (!would_do(index, wanted, {node, device.index})) continue;
    if (index.holders.contains({node, device.index})) continue;
    const Drain* drain = drain_of_device(index.drains, record->first, device);
    if (bar_of(device, drain, index.policy.other_use()) == DeviceBar::None) continue;
    found.push_back({device.index,
                     device.usable ? "" : device.trouble,
                     drain != nullptr,
                     drain != nullptr ? drain->reason : "",
                     device.processes});
  }
  return found;
}

/// Whether it is only there for what jobs still hold on it.
bool is_gone(const Index& index, NodeIndex node) {
  const auto record = index.nodes.find(index.ledger.node(node).name);
  return record == index.nodes.end() || record->second.removed;
}

/// The node that comes closest to having room; nothing if there is no node.
std::optional<NodeIndex> closest(const Index& index, placement::DemandIndex demand) {
  const Ledger& ledger = index.ledger;
  const auto distance = [&](NodeIndex node) {
    const placement::Shortfall lacks = ledger.shortfall(demand, node);
    return std::tuple(lacks.selector, lacks.closed, lacks.devices, lacks.milli_cpus, lacks.memory);
  };
  std::optional<NodeIndex> best;
  for (NodeIndex node = 0; node < ledger.size(); ++node) {
    if (!ledger.is_there(node) || is_gone(index, node)) continue;
    if (!best || distance(node) < distance(*best)) best = node;
  }
  return best;
}

int nodes_with_room(const Ledger& ledger, placement::DemandIndex demand) {
  int count = 0;
  for (NodeIndex node = 0; node < ledger.size(); ++node) {
    if (ledger.fits(demand, node)) ++count;
  }
  return count;
}

BlockerKind device_lack(const placement::Shortfall& lacks, const Request& asks) {
  if (lacks.gpu_memory > Memory{}) return BlockerKind::GpuMemory;
  const bool is_share = lacks.share > Share{} && asks.mode == GpuMode::Fraction;
  return is_share ? BlockerKind::GpuShare : BlockerKind::Gpus;
}

Blocker explain_devices(const Index& index,
                        const Request& asks,
                        placement::DemandIndex demand,
                        NodeIndex node,
                        Now now) {
  const placement::Demand& wanted = index.ledger.demand(demand);
  const placement::Shortfall lacks = index.ledger.shortfall(demand, node);
  const std::string where = node_shown(index, node);
  auto holding = device_holders(index, wanted, node, now);
  const BlockerKind kind = device_lack(lacks, asks);
  if (kind == BlockerKind::GpuMemory) {
    return blocker::GpuMemory{
        lacks.gpu_memory_need, lacks.gpu_memory, asks.gpus, std::move(holding), where};
  }
  if (kind == BlockerKind::GpuShare) {
    return blocker::GpuShare{asks.share, lacks.share, std::move(holding), where};
  }
  return blocker::Gpus{asks.gpus,
                       lacks.devices_free,
                       kind_text(asks),
                       std::move(holding),
                       unusable(index, wanted, node),
                       where};
}

/// No node is of the right sort any more: there was one when the job was taken.
Blocker explain_sort(const Request& asks) {
  if (!placement::demand_of(asks).only_sees()) return blocker::Nodes{1, 0};
  return blocker::Gpus{1, 0, kind_text(asks), {}, {}, ""};
}

Blocker explain_closed(const Index& index, NodeIndex node, Now now) {
  const std::string& name = index.ledger.node(node).name;
  const auto record = index.nodes.find(name);
  if (record != index.nodes.end() && record->second.unreachable) {
    return blocker::NodeClosed{name, *record->second.unreachable, blocker::Closed::Unreachable};
  }
  if (const Drain* drain = drain_of_node(index.drains, name)) {
    return blocker::NodeClosed{name, drain->reason, blocker::Closed::Drained};
  }
  const auto health = index.health.find(name);
  if (health == index.health.end() || index.ledger.node(node).healthy) {
    return blocker::NodeClosed{name, "", blocker::Closed::Unreachable};
  }
  const auto wait = health->second.trial
                        ? std::chrono::milliseconds(0)
                        : std::max(health->second.retry_at - index.lived_at(now.mono),
                                   std::chrono::milliseconds(0));
  return blocker::NodeUnhealthy{name, health->second.reason, wait};
}

/// Another slice that has to be made or removed before it is known what there is room for; "":
/// none.
std::string what_is_first(const Index& index, const std::string& node, const MigGpu& gpu) {
  for (const SliceRecord& one : index.slices) {
    const bool is_open = one.slice.is_under_way() || is_unseen(one);
    if (!is_open || one.slice.node != node) continue;
    if (one.trouble.empty()) return kept<Kept::SliceFirst>();
    if (one.slice.gpu == gpu.uuid) {
      return kept<Kept::SliceUnknown>(one.trouble);
    }
  }
  return "";
}

/// What of a GPU keeps a slice of that profile from being made of it.
blocker::Slice slice_on(const Index& index,
                        const std::string& node,
                        const MigGpu& gpu,
                        const std::string& profile) {
  const auto is_it = [&](const auto& one) {
    return one.node == node && one.gpu == gpu.uuid && one.profile == profile;
  };
  for (const SliceRecord& one : index.slices) {
    const bool is_made = one.slice.stage == SliceStage::Making && is_it(one.slice);
    if (is_made) return {profile, true, one.trouble};
  }
  if (const Drain* drain = drain_of_cut_gpu(index.drains, node, gpu.uuid)) {
    return {profile,
            false,
            drain->reason.empty() ? kept<Kept::GpuDrained>()
                                  : kept<Kept::GpuDrainedFor>(drain->reason)};
  }
  const auto refused = std::ranges::find_if(index.cut_refusals, is_it);
  if (refused != index.cut_refusals.end()) return {profile, false, refused->why};
  return {profile, false, gpu.unread.empty() ? what_is_first(index, node, gpu) : gpu.unread};
}

/// What keeps a slice from being made for it where gflow makes them: one that is being made first,
/// then one that was refused.
std::optional<Blocker> explain_slice(const Index& index, placement::DemandIndex demand) {
  const placement::Demand& wanted = index.ledger.demand(demand);
  if (!may_be_cut_for(wanted)) return std::nullopt;
  std::optional<blocker::Slice> found;
  const auto rank = [](const blocker::Slice& one) {
    return std::pair(one.is_made, !one.trouble.empty());
  };
  for (const auto& [name, record] : index.nodes) {
    for (const MigGpu& gpu : record.machine.mig_gpus) {
      if (!index.policy.cuts(gpu.uuid)) continue;
      std::vector<std::string> profiles = profiles_for(wanted, gpu);
      if (!gpu.unread.empty())
        profiles = {std::string(catalogue::profile_of(wanted.models.front()))};
      for (const std::string& profile : profiles) {
        const blocker::Slice one = slice_on(index, name, gpu, profile);
        if (!found || rank(*found) < rank(one)) found = one;
      }
    }
  }
  return found;
}

}  // namespace

std::string node_shown(const Index& index, NodeIndex node) {
  return index.ledger.count() > 1 ? index.ledger.node(node).name : "";
}

void explain_resources(const Index& index,
                       const JobSpec& spec,
                       Now now,
                       std::vector<Blocker>& why) {
  const Ledger& ledger = index.ledger;
  const Request& asks = spec.request;
  const auto demand = ledger.find(placement::demand_of(spec));
  if (!demand) return;
  if (asks.nodes > 1) {
    const int room = nodes_with_room(ledger, *demand);
    if (room < asks.nodes) why.emplace_back(blocker::Nodes{asks.nodes, room});
    return;
  }
  const auto found = closest(index, *demand);
  if (!found) return why.emplace_back(blocker::Nodes{1, 0}), void();
  const NodeIndex node = *found;
  const placement::Shortfall lacks = ledger.shortfall(*demand, node);
  const std::string& name = ledger.node(node).name;
  if (lacks.selector) why.push_back(explain_sort(asks));
  if (lacks.closed) why.push_back(explain_closed(index, node, now));
  if (lacks.devices > 0) {
    why.push_back(explain_devices(index, asks, *demand, node, now));
    if (auto slice = explain_slice(index, *demand)) why.push_back(*std::move(slice));
  }
  if (lacks.memory > Memory{}) {
    const auto holds = [](const Job& other) { return other.spec.request.memory.bytes > 0; };
    why.emplace_back(blocker::HostMemory{asks.memory,
                                         asks.memory - lacks.memory,
                                         holders(index, name, now, holds),
                                         node_shown(index, node)});
  }
  if (lacks.milli_cpus > 0) {
    const auto holds = [](const Job& other) { return other.spec.request.cpus > 0; };
    const auto available = ledger.state(node).milli_cpus_free / 1000;
    why.emplace_back(blocker::Cpus{asks.cpus,
                                   static_cast<int>(available),
                                   holders(index, name, now, holds),
                                   node_shown(index, node)});
  }
}

std::optional<BlockerKind> first_lack(const Index& index,
                                      placement::DemandIndex demand,
                                      const Request& asks) {
  if (asks.nodes > 1) {
    const bool has_room = nodes_with_room(index.ledger, demand) >= asks.nodes;
    return has_room ? std::nullopt : std::optional(BlockerKind::Nodes);
  }
  const auto node = closest(index, demand);
  if (!node) return BlockerKind::Nodes;
  const placement::Shortfall lacks = index.ledger.shortfall(demand, *node);
  if (lacks.selector) return blocker_kind(explain_sort(asks));
  if (lacks.closed) return blocker_kind(explain_closed(index, *node, index.now));
  if (lacks.devices > 0) return device_lack(lacks, asks);
  if (lacks.memory > Memory{}) return BlockerKind::HostMemory;
  return lacks.milli_cpus > 0 ? std::optional(BlockerKind::Cpus) : std::nullopt;
}

}  // namespace gflow::engine
