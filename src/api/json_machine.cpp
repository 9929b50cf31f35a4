// SPDX-License-Identifier: Apache-2.0
#include "api/documents.h"
#include "api/job_fields.h"
#include "api/json.h"
#include "api/machine_parts.h"
#include "api/topology_fields.h"

namespace gflow::api {

template <>
inline constexpr std::string_view kSchemaName<UnhealthyNode> = "UnhealthyNode";
template <class Io, Like<UnhealthyNode> T>
void fields(Io& io, T& node) {
  io.field("node", node.node);
  io.field("reason", node.reason);
  io.field("failures", node.failures);
  io.field("retry_at", node.retry_at);
}

template <>
inline constexpr std::string_view kSchemaName<MigRoomView> = "MigRoomView";
template <class Io, Like<MigRoomView> T>
void fields(Io& io, T& room) {
  io.required("gpu", room.gpu);
  io.field("model_short", room.model_short);
  io.field("profiles", room.profiles);
  io.field("trouble", room.trouble);
  io.field("refused", room.refused);
  io.field("drained", room.drained);
  io.field("drained_reason", room.drained_reason);
}

template <>
inline constexpr std::string_view kSchemaName<NodeView> = "NodeView";
template <class Io, Like<NodeView> T>
void fields(Io& io, T& node) {
  io.required("name", node.name);
  io.known_text("unreachable", node.unreachable);
  io.known_text("removed", node.removed);
  io.field("drained", node.drained);
  io.field("drained_reason", node.drained_reason);
  io.field("source", node.source);
  io.field("note", node.note);
  io.known_text("driver", node.driver);
  io.field("labels", node.labels);
  io.required("devices", node.devices);
  io.field("mig_room", node.mig_room);
  io.field("drained_absent", node.drained_absent);
  io.field("topology", node.topology);
  io.field("cpus", node.cpus);
  io.field("cpus_free", node.cpus_free);
  io.field("memory_bytes", node.memory);
  io.field("memory_free_bytes", node.memory_free);
}

template <class Io, Like<MachineView> T>
void fields(Io& io, T& machine) {
  io.required("nodes", machine.nodes);
  io.field("unhealthy", machine.unhealthy);
  io.field("cpus", machine.cpus);
  io.field("cpus_free", machine.cpus_free);
  io.field("memory_bytes", machine.memory);
  io.field("memory_free_bytes", machine.memory_free);
  io.field("running", machine.running);
  io.field("queued", machine.queued);
  io.field("held", machine.held);
  io.field("revision", machine.revision);
}

template <>
inline constexpr std::string_view kSchemaName<NodeStateView> = "NodeStateView";
template <class Io, Like<NodeStateView> T>
void fields(Io& io, T& view) {
  fields(io, view.node);
  io.derived("ready", view.ready());
  io.field("unhealthy", view.unhealthy);
}

template <class Io, Like<NodeList> T>
void fields(Io& io, T& list) {
  io.required("nodes", list.nodes);
}

template <>
inline constexpr std::string_view kSchemaName<DeviceOnNodeView> = "DeviceOnNodeView";
template <class Io, Like<DeviceOnNodeView> T>
void fields(Io& io, T& view) {
  io.required("node", view.node);
  fields(io, view.device);
}

template <class Io, Like<DeviceList> T>
void fields(Io& io, T& list) {
  io.required("devices", list.devices);
}

template <>
inline constexpr std::string_view kSchemaName<NodeTopologyView> = "NodeTopologyView";
template <class Io, Like<NodeTopologyView> T>
void fields(Io& io, T& view) {
  io.required("node", view.node);
  io.field("gpu_indices", view.gpu_indices);
  io.field("topology", view.topology);
}

template <class Io, Like<TopologyList> T>
void fields(Io& io, T& list) {
  io.required("nodes", list.nodes);
}

void describe_machine(Schemas& schemas) {
  schemas.document<MachineView>("Machine", Form::Answer);
  schemas.document<NodeList>("Nodes", Form::Answer);
  schemas.document<NodeStateView>("Node", Form::Answer);
  schemas.document<DeviceList>("Devices", Form::Answer);
  schemas.document<DeviceOnNodeView>("Device", Form::Answer);
  schemas.document<TopologyList>("Topology", Form::Answer);
}

std::string write(const MachineView& machine) { return Writer::document("Machine", machine); }
std::string write(const NodeStateView& node) { return Writer::document("Node", node); }
std::string write(const NodeList& nodes) { return Writer::document("Nodes", nodes); }
std::string write(const DeviceOnNodeView& device) { return Writer::document("Device", device); }
std::string write(const DeviceList& devices) { return Writer::document("Devices", devices); }
std::string write(const TopologyList& topology) { return Writer::document("Topology", topology); }

Result<MachineView> read_machine(std::string_view json) {
  return Reader::answer<MachineView>(json, "Machine");
}
Result<NodeStateView> read_node(std::string_view json) {
  return Reader::answer<NodeStateView>(json, "Node");
}
Result<NodeList> read_nodes(std::string_view json) {
  return Reader::answer<NodeList>(json, "Nodes");
}
Result<DeviceList> read_devices(std::string_view json) {
  return Reader::answer<DeviceList>(json, "Devices");
}
Result<TopologyList> read_topology(std::string_view json) {
  return Reader::answer<TopologyList>(json, "Topology");
}

}  // namespace gflow::api
