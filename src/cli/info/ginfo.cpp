// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <ostream>

#include "api/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/info/links_text.h"
#include "cli/info/machine_text.h"
#include "command/context.h"

namespace gflow::cli {

namespace {

/// Of each node that has GPUs or says why not, under its name where there are several.
Result<std::string> topology_text(const api::MachineView& machine) {
  std::string out;
  for (const api::NodeView& node : machine.nodes) {
    if (machine.nodes.size() > 1) {
      out += fmt::format("{}Node {}\n", out.empty() ? "" : "\n", printable(node.name));
    }
    out += GF_TRY(links_text(node));
  }
  return out;
}

Result<int> run_ginfo(const Invocation& invocation, Context& context) {
  const api::MachineView machine = GF_TRY(context.daemon().machine());
  // What is wrong beside the devices: to the standard error, so that scripts read what they know.
  if (const auto daemon = context.daemon().daemon()) {
    for (const std::string& warning : daemon->warnings) context.note("warning: " + warning);
  }
  if (context.json) {
    context.out << api::write(machine) << '\n';
  } else if (invocation.has("topo")) {
    context.out << GF_TRY(topology_text(machine));
  } else if (invocation.has("brief")) {
    context.out << machine_brief(machine, context.paint);
  } else {
    context.out << machine_text(machine, context.paint);
  }
  return 0;
}

}  // namespace

Command ginfo_command() {
  return {
      .name = "ginfo",
      .summary = "show the GPUs and who has them",
      .usage = {"[options]"},
      .description =
          "Shows every GPU of the machine: model, UUID, whether it is available or which job has "
          "it, "
          "and what it does. A GPU used by a process that is not gflow's is not given to a job; "
          "the "
          "process is named. Readings a driver does not give are left out, not shown as zero.",
      .options = {{.name = "brief", .letters = "1", .help = "One line per GPU."},
                  {.name = "topo",
                   .help = "How the GPUs are connected: links, PCIe paths, NUMA nodes."}},
      .examples = {{"ginfo", "all GPUs"},
                   {"ginfo -1", "one line each"},
                   {"ginfo --topo", "the matrix of links and paths"}},
      .run = run_ginfo,
  };
}

}  // namespace gflow::cli
