// SPDX-License-Identifier: Apache-2.0
#include "kube/extender.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "core/catalogue.h"
#include "kube/lack.h"
#include "kube/want.h"
#include "os/clock.h"
#include "placement/demand.h"

namespace gflow::kube {
namespace {

using placement::DemandIndex;
using placement::NodeIndex;

/// Kinds of requests that are kept, each with a score for each node.
constexpr DemandIndex kMostDemands = 1024;
constexpr int kBestScore = 10;  // as kube-scheduler has it

placement::Node facts_of(const Node& node, const std::vector<Device>& devices) {
  placement::Node facts;
  facts.name = node.name;
  for (const Device& device : devices) {
    facts.devices.push_back(
        {.vendor = device.vendor,
         .model = catalogue::device_model(device.vendor, device.model, device.memory_total),
         .memory = device.memory_total.value_or(Memory{}),
         .usable = device.usable});
  }
  return facts;
}

std::int32_t parts_of(const placement::Demand& demand) {
  return demand.mode == GpuMode::Fraction ? demand.share.parts : Share::kWholeParts;
}

/// What a pod asks for without what kube-scheduler counts.
Result<gflow::Request> gpus_of(const Pod& pod) {
  gflow::Request request = GF_TRY(request_of(pod));
  request.cpus = 0;
  request.memory = {};
  return request;
}

}  // namespace

Extender::Extender() { begin_anew(); }

void Extender::begin_anew() {
  ledger_ = placement::Ledger();
  placer_ = std::make_unique<placement::Placer>(placement::policies().front().make({}));
  for (auto& [name, entry] : nodes_) {
    entry.holds.clear();
    dirty_.insert(name);
  }
  for (const auto& [uid, entry] : pods_) learn(entry.pod);
}

void Extender::put(Node node) {
  node_names_[node.uid] = node.name;
  NodeEntry& entry = nodes_[node.name];
  if (entry.node == node) return;
  dirty_.insert(node.name);
  entry.devices = devices_of(node);
  entry.node = std::move(node);
}

void Extender::node_gone(const std::string& uid) {
  const auto at = node_names_.find(uid);
  if (at == node_names_.end()) return;
  const std::string name = at->second;
  node_names_.erase(at);
  const auto node = nodes_.find(name);
  if (node == nodes_.end() || node->second.node.uid != uid) return;  // another has its name by now
  if (const auto index = ledger_.find(name)) {
    for (const NodeEntry::Hold& hold : node->second.holds) {
      ledger_.give_back(hold.demand, {*index, hold.devices});
    }
    ledger_.remove(*index);
  }
  nodes_.erase(node);
  dirty_.erase(name);
}

/// What the cluster says of a pod counts once it is on a node: until then it may be about to be.
/// And what it says there first: who may write annotations may change what it has, and not what it
/// uses.
void Extender::put(Pod pod) {
  const auto [at, is_new] = pods_.try_emplace(pod.uid);
  PodEntry& entry = at->second;
  const bool asks_else = entry.pod.gpu != pod.gpu || entry.pod.requests != pod.requests;
  entry.pod = std::move(pod);
  if (is_new) learn(entry.pod);
  if (asks_else && !entry.node.empty()) dirty_.insert(entry.node);
  if (entry.pod.node.empty()) {
    if (!entry.is_under_way) place(entry, "", "");
    return;
  }
  const bool was_under_way = std::exchange(entry.is_under_way, false);
  const bool was_there = entry.node == entry.pod.node && !was_under_way && !entry.given.empty();
  place(entry, entry.pod.node, was_there ? entry.given : entry.pod.allocation);
}

void Extender::pod_gone(const std::string& uid) {
  const auto at = pods_.find(uid);
  if (at == pods_.end()) return;
  place(at->second, "", "");
  refused_.erase(uid);
  pods_.erase(at);
}

/// What is asked for is what is left room for.
void Extender::learn(const Pod& pod) {
  const auto request = gpus_of(pod);
  if (!request || request->gpus == 0) return;
  placer_->arrived(ledger_, ledger_.intern(placement::demand_of(*request)));
}

void Extender::place(PodEntry& entry, const std::string& node, std::string given) {
  if (entry.node == node && entry.given == given) return;
  if (entry.node != node) {
    move(entry, node);
  } else {
    dirty_.insert(node);
  }
  entry.given = std::move(given);
}

void Extender::move(PodEntry& entry, const std::string& node) {
  if (!entry.node.empty()) {
    const auto at = on_node_.find(entry.node);
    at->second.erase(entry.pod.uid);
    if (at->second.empty()) on_node_.erase(at);
    dirty_.insert(entry.node);
    placer_->departed(ledger_);
  }
  entry.node = node;
  if (node.empty()) return;
  on_node_[node].insert(entry.pod.uid);
  dirty_.insert(node);
}

void Extender::catch_up() {
  if (ledger_.demands() > kMostDemands) begin_anew();
  for (const std::string& name : std::exchange(dirty_, {})) {
    const auto at = nodes_.find(name);
    if (at == nodes_.end()) continue;
    count(at->second);
    if (!refused_.empty()) counted_.insert(name);
  }
}

/// From the node and its pods, the oldest first: of two that say they have the same device it has
/// it.
void Extender::count(NodeEntry& entry) {
  if (const auto index = ledger_.find(entry.node.name)) {
    for (const NodeEntry::Hold& hold : std::exchange(entry.holds, {})) {
      ledger_.give_back(hold.demand, {*index, hold.devices});
    }
  }
  std::vector<const PodEntry*> pods;
  if (const auto here = on_node_.find(entry.node.name); here != on_node_.end()) {
    for (const std::string& uid : here->second) pods.push_back(&pods_.at(uid));
  }
  std::ranges::sort(pods, {}, [](const PodEntry* one) {
    return std::tuple(one->pod.created, one->pod.full_name(), one->pod.uid);
  });

  placement::Node facts = facts_of(entry.node, entry.devices);
  std::vector<std::int32_t> parts(facts.devices.size(), 0);
  std::vector<const PodEntry*> unnamed;
  for (const PodEntry* pod : pods) {
    auto hold = named(entry, *pod, parts);
    if (hold) {
      entry.holds.push_back(*std::move(hold));
    } else {
      unnamed.push_back(pod);
    }
  }
  for (const PodEntry* pod : unnamed) mark_named(facts, entry, *pod);
  for (const PodEntry* pod : unnamed) mark_asked_for(facts, entry, pod->pod, parts);
  const NodeIndex index = ledger_.put(std::move(facts));
  for (const NodeEntry::Hold& hold : entry.holds) {
    ledger_.take(hold.demand, {index, hold.devices});
  }
}

/// What the pod has there, if it says so and has it: added to `parts`, which others have of each
/// device.
std::optional<Extender::NodeEntry::Hold> Extender::named(const NodeEntry& entry,
                                                         const PodEntry& pod,
                                                         std::vector<std::int32_t>& parts) {
  if (pod.given.empty()) return std::nullopt;
  const auto request = gpus_of(pod.pod);
  if (!request || request->gpus == 0) return std::nullopt;
  const auto devices = devices_named(pod.given, entry.node.name, entry.devices, *request);
  if (!devices) return std::nullopt;
  const placement::Demand demand = placement::demand_of(*request);
  const std::int32_t each = parts_of(demand);
  for (const int device : *devices) {
    if (parts[static_cast<std::size_t>(device)] + each > Share::kWholeParts) return std::nullopt;
  }
  for (const int device : *devices) parts[static_cast<std::size_t>(device)] += each;
  return NodeEntry::Hold{ledger_.intern(demand), *devices};
}

/// Of what a pod says that it has, though it is not what it asks for, nobody is given anything.
void Extender::mark_named(placement::Node& facts, const NodeEntry& entry, const PodEntry& pod) {
  const auto chosen = read_chosen(pod.given);
  if (!chosen || chosen->node != facts.name) return;
  for (const Chosen& one : chosen->devices) {
    const auto index = index_of(entry.devices, one);
    if (index) facts.devices[static_cast<std::size_t>(*index)].usable = false;
  }
}

/// Which of a resource it has only its kubelet knows: as many from the last one on are taken for
/// its, of those that nobody has, and then of those of which somebody has a part.
void Extender::mark_asked_for(placement::Node& facts,
                              const NodeEntry& entry,
                              const Pod& pod,
                              const std::vector<std::int32_t>& parts) {
  const auto mark = [&](std::string_view prefix, std::int64_t count, std::int32_t most) {
    for (std::size_t i = facts.devices.size(); i-- > 0 && count > 0;) {
      const bool is_one =
          facts.devices[i].usable && parts[i] <= most && entry.devices[i].uuid.starts_with(prefix);
      if (!is_one) continue;
      facts.devices[i].usable = false;
      --count;
    }
    return count;
  };
  bool has_resource = false;
  for (const GpuResource& resource : kGpuResources) {
    const std::int64_t asked = amount_of(pod.requests, resource.name) / 1000;
    has_resource = has_resource || asked > 0;
    (void)mark(std::string(resource.name) + "/", asked, 0);
  }
  const auto request = request_of(pod);
  if (has_resource || !request) return;
  (void)mark("", mark("", request->gpus, 0), Share::kWholeParts - 1);
}

Result<std::optional<Extender::Wanted>> Extender::wanted_by(const Pod& pod) {
  catch_up();
  gflow::Request request = GF_TRY(gpus_of(pod));
  const placement::Demand demand = placement::demand_of(request);
  if (demand.gpus == 0 && !demand.only_sees()) return std::optional<Wanted>{};
  const DemandIndex index = ledger_.intern(demand);
  return std::optional(Wanted{std::move(request), index});
}

std::map<std::string, Extender::Refusal> Extender::refusals(const Pod& pod,
                                                            std::span<const std::string> nodes,
                                                            MonoTime now) {
  std::map<std::string, Refusal> refusals;
  refused_.erase(pod.uid);
  const auto wanted = wanted_by(pod);
  if (!wanted) {
    for (const std::string& name : nodes) refusals[name] = {wanted.error().message, true};
    return refusals;
  }
  if (!*wanted) return refusals;
  for (const std::string& name : nodes) {
    const auto index = ledger_.find(name);
    if (!index) {
      refusals[name] = {"node(s) are not known to gflow-kube yet", false};
      continue;
    }
    std::string why = lack(ledger_.shortfall((*wanted)->demand, *index), (*wanted)->request);
    if (why.empty()) continue;
    refusals[name] = {std::move(why), !ledger_.could_fit((*wanted)->demand, *index)};
  }
  const bool has_some = refusals.size() < nodes.size();
  const auto is_final = [](const auto& one) { return one.second.is_final; };
  if (!has_some && !std::ranges::all_of(refusals, is_final)) refused_[pod.uid] = now;
  return refusals;
}

std::vector<Pod> Extender::overlooked(MonoTime now) {
  constexpr std::size_t kMost = 16;  // at once: they take the room
  std::erase_if(refused_, [now](const auto& one) { return one.second + kOverlooked < now; });
  if (refused_.empty()) {
    counted_.clear();
    return {};
  }
  catch_up();
  const std::set<std::string> nodes = std::exchange(counted_, {});
  std::vector<Pod> found;
  for (const auto& [uid, when] : std::map(refused_)) {
    const auto at = pods_.find(uid);
    const auto wanted = at == pods_.end() ? std::nullopt : *wanted_by(at->second.pod);
    if (!wanted) {
      refused_.erase(uid);
      continue;
    }
    const auto fits = [&](const std::string& name) {
      const auto index = ledger_.find(name);
      return index && ledger_.fits(wanted->demand, *index);
    };
    if (std::ranges::any_of(nodes, fits)) found.push_back(at->second.pod);
  }
  std::ranges::sort(found, [](const Pod& a, const Pod& b) {
    return std::tie(b.priority, a.created, a.uid) < std::tie(a.priority, b.created, b.uid);
  });
  found.resize(std::min(found.size(), kMost));
  for (const Pod& pod : found) refused_.erase(pod.uid);
  return found;
}

std::vector<int> Extender::scores(const Pod& pod, std::span<const std::string> nodes) {
  std::vector<int> scores(nodes.size(), 0);
  const auto wanted = wanted_by(pod);
  if (!wanted || !*wanted) return scores;
  std::vector<std::optional<placement::Score>> found;
  std::optional<placement::Score> least;
  std::optional<placement::Score> most;
  for (const std::string& name : nodes) {
    const auto index = ledger_.find(name);
    found.push_back(index ? placer_->score_on(ledger_, (*wanted)->demand, *index) : std::nullopt);
    if (!found.back()) continue;
    least = std::min(least.value_or(*found.back()), *found.back());
    most = std::max(most.value_or(*found.back()), *found.back());
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i]) continue;
    const double range = static_cast<double>(*most) - *least;
    const double above = static_cast<double>(*found[i]) - *least;
    scores[i] = range > 0 ? static_cast<int>(std::lround(kBestScore * above / range)) : kBestScore;
  }
  return scores;
}

Result<Bind> Extender::give(const Pod& pod, const std::string& node) {
  const std::optional<Wanted> wanted = GF_TRY(wanted_by(pod));
  Bind bind{pod.uid, pod.name_space, pod.name, node, "", os::now().mono};
  if (!pods_.contains(pod.uid)) put(pod);
  PodEntry& entry = pods_.at(pod.uid);
  if (!entry.node.empty()) {
    return fail(Code::WrongState,
                fmt::format("{} is {} on {}",
                            pod.full_name(),
                            entry.is_under_way ? "about to be" : "already",
                            entry.node));
  }
  if (wanted) {
    const auto index = ledger_.find(node);
    if (!index) return fail(Code::NotFound, "the node " + node + " is not known to gflow-kube yet");
    const std::string why = lack(ledger_.shortfall(wanted->demand, *index), wanted->request);
    if (!why.empty()) return fail(Code::Exhausted, fmt::format("{}: {}", node, why));
    bind.allocation = allocation_on(*wanted, node, *index);
  }
  entry.is_under_way = true;
  place(entry, node, bind.allocation);
  return bind;
}

/// gflow/allocation of the devices that are best for it there; "" if it only sees some.
std::string Extender::allocation_on(const Wanted& wanted,
                                    const std::string& node,
                                    NodeIndex index) {
  const std::vector<Device>& devices = nodes_.at(node).devices;
  const placement::Demand& demand = ledger_.demand(wanted.demand);
  ChosenDevices chosen{node, {}};
  for (const int device : placer_->devices_on(ledger_, wanted.demand, index)) {
    Chosen one = name_device(devices, device);
    one.share = demand.mode == GpuMode::Fraction ? demand.share : Share::whole();
    one.memory = ledger_.reserve_on(
        demand, devices[static_cast<std::size_t>(device)].memory_total.value_or(Memory{}));
    chosen.devices.push_back(std::move(one));
  }
  return chosen.devices.empty() ? "" : text_of(chosen);
}

void Extender::not_bound(const std::string& uid) {
  const auto at = pods_.find(uid);
  if (at == pods_.end() || !std::exchange(at->second.is_under_way, false)) return;
  place(at->second, "", "");
}

const Pod* Extender::find(const std::string& uid) const {
  const auto at = pods_.find(uid);
  return at == pods_.end() ? nullptr : &at->second.pod;
}

}  // namespace gflow::kube
