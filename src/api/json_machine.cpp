// SPDX-License-Identifier: Apache-2.0
#include "api/documents.h"
#include "api/job_fields.h"
#include "api/json.h"
#include "api/topology_fields.h"

namespace gflow::api {

template <class Io, Like<UnhealthyNode> T>
void fields(Io& io, T& node) {
  io.field("node", node.node);
  io.field("reason", node.reason);
  io.field("failures", node.failures);
  io.field("retry_at", node.retry_at);
}

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

void describe_machine(Schemas& schemas) { schemas.document<MachineView>("Machine", Form::Answer); }

std::string write(const MachineView& machine) { return Writer::document("Machine", machine); }

Result<MachineView> read_machine(std::string_view json) {
  return Reader::document<MachineView>(json, "Machine", Unknown::Ignored);
}

}  // namespace gflow::api
