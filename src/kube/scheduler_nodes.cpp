// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "kube/predicates.h"
#include "kube/scheduler.h"

/// What the engine is told of nodes.
namespace gflow::kube {
namespace {

void use_device(Device& device, const std::string& pod) {
  DeviceProcess process;
  process.name = pod;
  device.processes.push_back(std::move(process));
}

/// The devices of its annotation, whichever gflow-kube wrote it.
void mark_named(Machine& machine, const std::string& given, const std::string& pod) {
  const auto chosen = read_chosen(given);
  if (!chosen || chosen->node != machine.name) return;
  for (const Chosen& one : chosen->devices) {
    const auto index = index_of(machine.devices, one);
    if (index) use_device(machine.devices[static_cast<std::size_t>(*index)], pod);
  }
}

/// Whether all devices of the node are of this resource, so that the engine counts it.
bool is_only_gpu(const Node& node, std::string_view name) {
  bool is_gpu = false;
  for (const GpuResource& resource : kGpuResources) {
    if (resource.name == name) {
      is_gpu = true;
    } else if (amount_of(node.allocatable, resource.name) > 0) {
      return false;
    }
  }
  return is_gpu;
}

/// Amounts are what whoever made a pod wrote there, however much that is.
std::int64_t less(std::int64_t there, std::int64_t taken) {
  return taken < there ? there - taken : 0;
}

}  // namespace

void Scheduler::touch_all() {
  for (const auto& [name, node] : nodes_) touch(name);
}

void Scheduler::judge_all() {
  for (const auto& [name, node] : nodes_) rejudged_.insert(rejudged_.end(), name);
}

void Scheduler::count_extras(NodeEntry& node) const {
  node.extras_used.clear();
  node.ports_used.clear();
  const auto here = on_node_.find(node.node.name);
  if (here == on_node_.end()) return;
  for (const std::string& uid : here->second) {
    const Pod& pod = pods_.at(uid).pod;
    add_to(node.extras_used, extras_of(pod));
    node.ports_used.insert(node.ports_used.end(), pod.ports.begin(), pod.ports.end());
  }
}

/// What keeps pods of the class from the node, of all that the engine does not count; "" if nothing
/// does.
std::string Scheduler::lacks(const NodeEntry& node, const Class& pods) const {
  if (std::string refusal = refusal_of(node.node, pods.wishes); !refusal.empty()) return refusal;
  for (const auto& [name, wanted] : pods.extras) {
    const std::int64_t there = amount_of(node.node.allocatable, name);
    // One that is full just now could admit them all the same.
    const std::int64_t used = is_only_gpu(node.node, name) ? 0 : amount_of(node.extras_used, name);
    if (wanted <= there - used) continue;
    return name == "pods" ? "Too many pods" : "Insufficient " + name;
  }
  for (const HostPort& port : pods.ports) {
    const auto taken = [&port](const HostPort& used) { return collide(port, used); };
    if (!std::ranges::any_of(node.ports_used, taken)) continue;
    return "node(s) didn't have free ports for the requested pod ports";
  }
  if (std::string refusal = refusal_of(node.node, pods.storage); !refusal.empty()) return refusal;
  if (!pods.devices.is_empty()) {
    if (std::string refusal = devices_.refusal(node.node, pods.devices); !refusal.empty()) {
      return refusal;
    }
  }
  return pods.bonds.empty() ? "" : neighbours_.refusal(pods.id, node.node);
}

/// The classes that it admits, of those that wait.
std::vector<Label> Scheduler::admits(const NodeEntry& node) const {
  std::vector<Label> labels;
  for (const auto& [key, one] : classes_) {
    if (one.waiting == 0 || !lacks(node, one).empty()) continue;
    labels.push_back(selector_of(one).front());
  }
  return labels;
}

/// And where it stands in the network.
std::vector<Label> Scheduler::labels_of(const NodeEntry& node) const {
  std::vector<Label> labels = admits(node);
  for (const std::string& label : labels_) {
    const auto at = node.node.labels.find(label);
    if (at != node.node.labels.end()) labels.push_back({label, at->second});
  }
  std::ranges::sort(labels);
  return labels;
}

Machine Scheduler::machine_of(const NodeEntry& node) const {
  Machine machine;
  machine.name = node.node.name;
  machine.source = "kubernetes";
  machine.devices = devices_of(node.node);
  std::int64_t cpus = amount_of(node.node.allocatable, "cpu");
  std::int64_t memory = amount_of(node.node.allocatable, "memory") / 1000;
  if (const auto here = on_node_.find(machine.name); here != on_node_.end()) {
    for (const std::string& uid : here->second) {
      const PodEntry& entry = pods_.at(uid);
      if (entry.role != Role::Foreign) continue;
      cpus = less(cpus, amount_of(entry.pod.requests, "cpu"));
      const std::int64_t used = amount_of(entry.pod.requests, "memory");
      memory = less(memory, used / 1000 + (used % 1000 == 0 ? 0 : 1));
    }
  }
  machine.cpus = static_cast<int>(std::clamp<std::int64_t>(cpus, 0, INT32_MAX));
  machine.memory = Memory{std::max<std::int64_t>(memory, 0)};
  machine.labels = labels_of(node);
  mark_foreign(machine);
  return machine;
}

/// Those that a pod of another scheduler says it has; and of what else its containers ask for, only
/// its kubelet knows which: as many from the last one on are taken for theirs, of those that nobody
/// has. So it is with pods of this one that do not say, as who may write annotations may remove
/// them.
void Scheduler::mark_foreign(Machine& machine) const {
  const auto here = on_node_.find(machine.name);
  if (here == on_node_.end()) return;
  std::vector<const PodEntry*> foreign;
  for (const std::string& uid : here->second) {
    const PodEntry& entry = pods_.at(uid);
    if (entry.role == Role::Foreign) foreign.push_back(&entry);
  }
  for (const PodEntry* one : foreign) mark_named(machine, one->given, one->pod.full_name());
  for (const PodEntry* one : foreign) mark_asked_for(machine, one->pod);
}

void Scheduler::mark_asked_for(Machine& machine, const Pod& pod) const {
  bool has_resource = false;
  for (const GpuResource& resource : kGpuResources) {
    const std::int64_t asked = amount_of(pod.requests, resource.name) / 1000;
    has_resource = has_resource || asked > 0;
    (void)mark(machine, pod, {.prefix = std::string(resource.name) + "/", .count = asked});
  }
  if (has_resource || !is_mine(pod)) return;
  const auto request = request_of(pod);
  if (!request || request->gpus == 0) return;
  const std::int64_t left = mark(machine, pod, {.prefix = "", .count = request->gpus});
  // Then it is on one of which others have a part, and nobody is given the rest.
  constexpr std::int32_t kSomeLeft = Share::kWholeParts - 1;
  (void)mark(machine, pod, {.prefix = "", .count = left, .held = kSomeLeft});
}

/// So many devices are the pod's, with those that it has already; how many there are not.
std::int64_t Scheduler::mark(Machine& machine, const Pod& pod, const Asked& asked) const {
  std::int64_t left = asked.count;
  const auto is_one = [&](const Device& device, std::int32_t held) {
    return device.uuid.starts_with(asked.prefix) && parts_held(machine.name, device.index) <= held;
  };
  for (const Device& device : machine.devices) {
    const bool is_its =
        std::ranges::find(device.processes, pod.full_name(), &DeviceProcess::name) !=
        device.processes.end();
    if (is_its && is_one(device, Share::kWholeParts - 1)) --left;
  }
  for (auto at = machine.devices.rbegin(); at != machine.devices.rend() && left > 0; ++at) {
    if (!at->processes.empty() || !is_one(*at, asked.held)) continue;
    use_device(*at, pod.full_name());
    --left;
  }
  return std::max<std::int64_t>(left, 0);
}

/// What pods that are still there have of a device, or will have: the engine may not know yet of
/// one that is gone, or whose binding failed.
std::int32_t Scheduler::parts_held(const std::string& node, int device) const {
  std::int32_t parts = 0;
  for (const JobId id : state_.holders(node, device)) {
    const auto uid = by_job_.find(id);
    const bool is_there = uid != by_job_.end() && pods_.at(uid->second).node == node;
    const Job* job = is_there ? state_.find(id) : nullptr;
    if (job == nullptr) continue;
    const gflow::Request& request = job->spec.request;
    parts += request.mode == GpuMode::Fraction ? request.share.parts : Share::kWholeParts;
  }
  return std::min(parts, Share::kWholeParts);
}

void Scheduler::flush_nodes() {
  while (!dirty_.empty() || !rejudged_.empty()) {
    engine::event::NodesChanged changed{machines_changed()};
    if (changed.nodes.empty()) return;
    retries_refused_ = true;
    step(changed);
  }
}

/// What is not as the engine knows it, of the nodes to be looked at.
std::vector<Machine> Scheduler::machines_changed() {
  std::vector<Machine> changed;
  for (const std::string& name : std::exchange(rejudged_, {})) {
    const auto at = nodes_.find(name);
    if (at == nodes_.end() || dirty_.contains(name)) continue;
    Machine& sent = at->second.sent;
    std::vector<Label> labels = labels_of(at->second);
    if (labels == sent.labels) continue;
    sent.labels = std::move(labels);
    changed.push_back(sent);
  }
  for (const std::string& name : std::exchange(dirty_, {})) {
    const auto at = nodes_.find(name);
    if (at == nodes_.end()) continue;
    NodeEntry& node = at->second;
    count_extras(node);
    Machine machine = machine_of(node);
    if (node.was_sent && machine == node.sent) continue;
    node.sent = machine;
    node.was_sent = true;
    changed.push_back(std::move(machine));
  }
  return changed;
}

}  // namespace gflow::kube
