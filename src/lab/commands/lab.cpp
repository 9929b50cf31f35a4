// SPDX-License-Identifier: Apache-2.0
#include "lab/commands/lab.h"

#include "base/translate.h"
#include "command/run_command.h"
#include "lab/commands/experiment.h"

namespace gflow::cli {

Command lab_command() {
  return {
      .name = "lab",
      .summary = tr("replay traces and snapshots, measure policies"),
      .usage = {"EXPERIMENT [options]"},
      .description =
          tr("The laboratory runs the daemon's own engine on a virtual clock. It needs no daemon "
             "and no GPU. The same command gives the same output, byte for byte."),
      .examples = {{"gflow lab replay now.json --add-node sim:8xH100",
                    tr("would another node help?")},
                   {"gflow lab openb --data data",
                    tr("compare placement policies on a public trace")}},
      .notes = {{tr("Data"),
                 tr("Public traces are read from --data DIR or GFLOW_LAB_DATA. If one is missing, "
                    "the error says where to download it.")}},
      .subcommands = {lab_replay_command(),
                      lab_openb_command(),
                      lab_churn_command(),
                      lab_topology_command(),
                      lab_queue_command()},
      .run = run_help,
  };
}

}  // namespace gflow::cli
