// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <ostream>

#include "api/account.h"
#include "api/json.h"
#include "base/text.h"
#include "base/translate.h"
#include "cli/caller.h"
#include "cli/commands.h"
#include "cli/info/free_gpus.h"
#include "cli/info/links_text.h"
#include "cli/info/machine_screen.h"
#include "cli/info/machine_text.h"
#include "command/context.h"
#include "command/wrap.h"
#include "os/clock.h"

namespace gflow::cli {

namespace {

/// Of each node that has GPUs or says why not, under its name where there are several.
Result<std::string> topology_text(const api::MachineView& machine, std::size_t columns) {
  std::string out;
  for (const api::NodeView& node : machine.nodes) {
    if (machine.nodes.size() > 1) {
      out += tr_format("{}Node {}\n", out.empty() ? "" : "\n", printable(node.name));
    }
    out += GF_TRY(links_text(node, columns));
  }
  return out;
}

/// How much of GPUs who asks holds of what they may, if there is a limit.
std::string limit_line(Context& context) {
  const auto body = context.daemon().call("GET", "/api/v1/principal");
  if (!body) return "";
  const auto me = api::read_principal(*body);
  if (!me || !me->max_gpus) return "";
  return tr_format("you hold {} of at most {} GPUs\n", me->gpus_held, *me->max_gpus);
}

/// What a person at a terminal sees who asked for no form of their own.
std::string screen_text(const Invocation& invocation,
                        const api::MachineView& machine,
                        Context& context) {
  const Painter& paint = context.paint;
  const MachineViewer viewer{viewer_name(context), os::now().wall, os::utc_offset, context.columns};
  const std::string table = gpus_screen(machine, viewer, paint);
  const bool only_table = invocation.has("brief") && !table.empty();
  return only_table ? table : machine_screen(machine, viewer, paint) + limit_line(context);
}

Result<int> run_ginfo(const Invocation& invocation, Context& context) {
  context.is_for_programs_off_terminal();
  if (invocation.has("free")) return print_free_gpus(invocation, context);
  const api::MachineView machine = GF_TRY(context.daemon().machine());
  // What is wrong beside the devices: to the standard error, so that scripts read what they know.
  if (const auto daemon = context.daemon().daemon()) {
    for (const std::string& warning : daemon->warnings) context.note(printable(tr(warning)));
  }
  if (context.json) {
    context.out << api::write(machine) << '\n';
  } else if (invocation.has("topo")) {
    context.out << GF_TRY(context.listing([&] { return topology_text(machine, context.columns); }));
  } else if (context.out_is_terminal && !invocation.has("long")) {
    context.show(screen_text(invocation, machine, context));
  } else if (invocation.has("brief")) {
    context.out << context.listing([&] { return machine_brief(machine, context.paint); });
  } else {
    const auto text = context.listing([&] { return machine_text(machine, context.paint); });
    context.show(fit_lines(text, context.columns));
  }
  return 0;
}

std::vector<Option> ginfo_options() {
  std::vector<Option> options = {
      {.name = "brief",
       .letters = "1",
       .help = tr("Print one line per GPU and nothing else."),
       .excludes = {"long", "json"}},
      {.name = "long",
       .letters = "l",
       .help = tr("Print a block per GPU, with UUID, power and processes (default if "
                  "the output is not a terminal).")},
      {.name = "topo",
       .help = tr("Show how the GPUs are connected: links, PCIe paths and NUMA nodes."),
       .excludes = {"brief", "long"}},
      no_pager_option()};
  std::ranges::move(free_options(), std::back_inserter(options));
  return options;
}

std::vector<Example> ginfo_notes() {
  return {{tr("GPUs for a program that gflow does not start"),
           tr("'ginfo --free 2' prints the GPUs that gflow would give to a job, as "
              "CUDA_VISIBLE_DEVICES takes them (with CUDA_DEVICE_ORDER=PCI_BUS_ID, so that CUDA "
              "counts them alike). It prints nothing on stdout if they are not free: let the "
              "program run only if it succeeds, or it sees no GPU. They are not reserved, and two "
              "who ask at once are told the same; 'galloc --gpus 2 COMMAND' keeps them for it.")}};
}

}  // namespace

Command ginfo_command() {
  return {
      .name = "ginfo",
      .summary = tr("show the GPUs and who uses them"),
      .usage = {"[options]"},
      .description =
          tr("Shows every GPU of the machine: model, UUID, whether it is available or which job "
             "uses it, and its readings. A GPU used by a process outside gflow is not allocated to "
             "jobs; the process is named. Readings that the driver does not provide are left out "
             "rather than shown as zero.\n\nOn a terminal, shows one line per GPU: which users and "
             "jobs have it, what share of it, and until when by the time limit."),
      .options = ginfo_options(),
      .examples = {{"ginfo", tr("all GPUs")},
                   {"ginfo -l", tr("all details of each GPU")},
                   {"ginfo -1", tr("one line per GPU")},
                   {"ginfo --topo", tr("the matrix of links and paths")},
                   {"gpus=$(ginfo --free 2 --gpu-memory 40G) && CUDA_VISIBLE_DEVICES=$gpus ./run",
                    tr("start a program by hand on two GPUs with 40 GiB free")}},
      .notes = ginfo_notes(),
      .legends = {{tr("On a terminal (STATUS)"), gpu_state_legend()}},
      .run = run_ginfo,
  };
}

}  // namespace gflow::cli
