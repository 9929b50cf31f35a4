// SPDX-License-Identifier: Apache-2.0
#include "kube/extender.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "core/catalogue.h"
#include "kube/lack.h"
#include "kube/want.h"
#include "placement/demand.h"

namespace gflow::kube {
namespace {

using placement::DemandIndex;
using placement::NodeIndex;

/// Kinds of requests that are kept whoever asks, each with a score for each node.
constexpr DemandIndex kManyKinds = 1024;
constexpr int kBestScore = 10;  // as kube-scheduler has it
/// Columns of a mistake: each node's refusal has it.
constexpr std::size_t kMostOfMistake = 256;

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

bool counts_gpus(const Pod& pod) {
  return std::ranges::any_of(kGpuResources, [&pod](const GpuResource& resource) {
    return amount_of(pod.requests, resource.name) > 0;
  });
}

bool asks_for_gpus(const Pod& pod) { return !pod.gpu.empty() || counts_gpus(pod); }

/// What a pod asks for without what is kube-scheduler's to count or to order.
Result<gflow::Request> gpus_of(Pod pod) {
  if (!asks_for_gpus(pod)) return gflow::Request{};
  pod.gang_mistake.clear();
  gflow::Request request = GF_TRY(request_of(pod));
  request.cpus = 0;
  request.memory = {};
  return request;
}

/// The devices of a node, while those of its pods are marked that do not say which they have:
/// nobody is given these.
class UnnamedPods {
 public:
  UnnamedPods(placement::Node& facts,
              const std::vector<Device>& devices,
              const std::vector<std::int32_t>& parts)
      : facts_(facts), devices_(devices), parts_(parts) {}

  /// What it says that it has counts, though it is not what it asks for, and as many of all as it
  /// asks for.
  void mark(const Pod& pod, const std::string& given) {
    const std::set<std::size_t> its = mark_named(given);
    bool has_resource = false;
    for (const GpuResource& resource : kGpuResources) {
      const std::int64_t asked = amount_of(pod.requests, resource.name) / 1000;
      has_resource = has_resource || asked > 0;
      const std::string prefix = std::string(resource.name) + "/";
      const auto is_one = [&](std::size_t at) { return devices_[at].uuid.starts_with(prefix); };
      (void)mark_last(prefix, asked - std::ranges::count_if(its, is_one), 0);
    }
    const auto request = gpus_of(pod);
    if (has_resource || !request) return;
    const auto left = request->gpus - static_cast<std::int64_t>(its.size());
    (void)mark_last("", mark_last("", left, 0), Share::kWholeParts - 1);
  }

 private:
  /// Those that nobody has whose word counts.
  std::set<std::size_t> mark_named(const std::string& given) {
    std::set<std::size_t> its;
    const auto chosen = read_chosen(given);
    if (!chosen || chosen->node != facts_.name) return its;
    for (const Chosen& one : chosen->devices) {
      const auto index = index_of(devices_, one);
      if (!index) continue;
      const auto at = static_cast<std::size_t>(*index);
      if (facts_.devices[at].usable && parts_[at] == 0) its.insert(at);
      facts_.devices[at].usable = false;
    }
    return its;
  }

  /// Which of a resource it has only its kubelet knows: as many from the last one on are taken for
  /// its, of which others have no more than so many parts. How many there were not.
  std::int64_t mark_last(std::string_view prefix, std::int64_t count, std::int32_t most) {
    for (std::size_t at = devices_.size(); at-- > 0 && count > 0;) {
      const bool is_one =
          facts_.devices[at].usable && parts_[at] <= most && devices_[at].uuid.starts_with(prefix);
      if (!is_one) continue;
      facts_.devices[at].usable = false;
      --count;
    }
    return std::max<std::int64_t>(count, 0);
  }

  placement::Node& facts_;
  const std::vector<Device>& devices_;
  const std::vector<std::int32_t>& parts_;  ///< of each, that pods have that say so
};

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
  for (auto& [uid, refused] : refused_) refused.has_unknown = true;  // nodes have other numbers
  // As many kinds as are in use are no reason to begin anew again.
  most_kinds_ = std::max(kManyKinds, 2 * ledger_.demands());
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
  if (entry.told) met_.erase(entry.pod.uid);
  entry.told.reset();
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
  met_.erase(uid);
  pods_.erase(at);
}

void Extender::meet(const Pod& pod, MonoTime now) {
  if (pods_.contains(pod.uid)) return;
  put(pod);
  pods_.at(pod.uid).told = now;
  met_.insert(pod.uid);
}

std::vector<Pod> Extender::unconfirmed(MonoTime now) {
  constexpr std::chrono::seconds kOnce{10};
  std::vector<Pod> found;
  for (const std::string& uid : met_) {
    PodEntry& entry = pods_.at(uid);
    if (*entry.told + kOnce > now) continue;
    entry.told = now;
    found.push_back(entry.pod);
  }
  return found;
}

/// The placer keeps room for what is usually asked for.
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
    if (asks_for_gpus(entry.pod)) {
      dirty_.insert(entry.node);
      placer_->departed(ledger_);
    }
  }
  entry.node = node;
  if (node.empty()) return;
  on_node_[node].insert(entry.pod.uid);
  if (asks_for_gpus(entry.pod)) dirty_.insert(node);
}

void Extender::catch_up() {
  if (ledger_.demands() > most_kinds_) begin_anew();
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
  UnnamedPods others(facts, entry.devices, parts);
  for (const PodEntry* pod : unnamed) {
    if (asks_for_gpus(pod->pod)) others.mark(pod->pod, pod->given);
  }
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
    const std::string why = cut_end(wanted.error().message, kMostOfMistake);
    for (const std::string& name : nodes) refusals[name] = {why};
    return refusals;
  }
  if (!*wanted) return refusals;
  Refused refused{.when = now,
                  .demand = ledger_.demand((*wanted)->demand),
                  .nodes = std::vector<bool>(static_cast<std::size_t>(ledger_.size()))};
  for (const std::string& name : nodes) {
    const auto index = ledger_.find(name);
    if (!index) {
      refusals[name] = {"node(s) are not known to gflow-kube yet"};
      refused.has_unknown = true;
      continue;
    }
    std::string why = lack(ledger_.shortfall((*wanted)->demand, *index), (*wanted)->request);
    if (why.empty()) continue;
    // It knows what others hold only of what they ask for as a resource.
    const bool may_evict = counts_gpus(pod) && ledger_.could_fit((*wanted)->demand, *index);
    refusals[name] = {std::move(why), may_evict};
    refused.nodes[static_cast<std::size_t>(*index)] = true;
  }
  if (refusals.size() == nodes.size()) refused_[pod.uid] = std::move(refused);
  return refusals;
}

std::vector<Pod> Extender::overlooked(MonoTime now) {
  constexpr std::size_t kMost = 16;  // at once: they take the room
  std::erase_if(refused_, [now](const auto& one) { return one.second.when + kOverlooked < now; });
  std::vector<Pod> found;
  if (refused_.empty()) {
    counted_.clear();
    return found;
  }
  catch_up();
  const std::set<std::string> nodes = std::exchange(counted_, {});
  if (nodes.empty()) return found;
  for (const auto& [uid, refused] : refused_) {
    if (is_overlooked(uid, refused, nodes)) found.push_back(pods_.at(uid).pod);
  }
  std::ranges::sort(found, [](const Pod& a, const Pod& b) {
    return std::tie(b.priority, a.created, a.uid) < std::tie(a.priority, b.created, b.uid);
  });
  if (found.size() > kMost) counted_ = nodes;  // those left out are looked at the next time
  found.resize(std::min(found.size(), kMost));
  for (const Pod& pod : found) refused_.erase(pod.uid);
  return found;
}

/// Whether one of these nodes has room for it.
bool Extender::is_overlooked(const std::string& uid,
                             const Refused& refused,
                             const std::set<std::string>& nodes) {
  const auto at = pods_.find(uid);
  if (at == pods_.end() || !at->second.node.empty()) return false;
  const auto demand = ledger_.find(refused.demand);
  if (!demand) return false;
  return std::ranges::any_of(nodes, [&](const std::string& name) {
    const auto index = ledger_.find(name);
    if (!index) return false;
    const auto number = static_cast<std::size_t>(*index);
    const bool was_known = number < refused.nodes.size() && refused.nodes[number];
    const bool was_asked = was_known || refused.has_unknown;
    return was_asked && ledger_.fits(*demand, *index);
  });
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

Result<Bind> Extender::reserve(const std::string& uid, const std::string& node, MonoTime now) {
  const auto at = pods_.find(uid);
  if (at == pods_.end()) return fail(Code::NotFound, "the pod is not known to gflow-kube yet");
  PodEntry& entry = at->second;
  const std::optional<Wanted> wanted = GF_TRY(wanted_by(entry.pod));
  if (!entry.node.empty()) {
    return fail(Code::WrongState,
                fmt::format("{} is {} on {}",
                            entry.pod.full_name(),
                            entry.is_under_way ? "about to be" : "already",
                            entry.node));
  }
  Bind bind{uid, entry.pod.name_space, entry.pod.name, node, "", now};
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

}  // namespace gflow::kube
