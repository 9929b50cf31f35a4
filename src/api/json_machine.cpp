// SPDX-License-Identifier: Apache-2.0
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

template <class Io, Like<MachineView> T>
void fields(Io& io, T& machine) {
  io.field("hostname", machine.hostname);
  io.field("source", machine.source);
  io.field("note", machine.note);
  io.known_text("driver", machine.driver);
  io.required("devices", machine.devices);
  io.field("unhealthy", machine.unhealthy);
  io.field("topology", machine.topology);
  io.field("cpus", machine.cpus);
  io.field("cpus_free", machine.cpus_free);
  io.field("memory_bytes", machine.memory);
  io.field("memory_free_bytes", machine.memory_free);
  io.field("running", machine.running);
  io.field("queued", machine.queued);
  io.field("held", machine.held);
  io.field("revision", machine.revision);
}

std::string write(const MachineView& machine) { return Writer::document("Machine", machine); }

Result<MachineView> read_machine(std::string_view json) {
  return Reader::document<MachineView>(json, "Machine", Unknown::Ignored);
}

}  // namespace gflow::api
