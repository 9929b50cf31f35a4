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
          tr("The laboratory runs the very engine of the daemon on a virtual clock. It needs no "
             "daemon "
             "and no GPU. The same command gives the same output, byte for byte."),
      .examples = {{"gflow lab replay now.json --add-node sim:8xH100",
                    tr("would another node help?")},
                   {"gflow lab openb --data data",
                    tr("compare placement policies on a public trace")}},
      .notes =
          {{"Data",
            tr("Experiments on public traces read them from --data DIR or GFLOW_LAB_DATA; one that "
               "is not there is named with where it can be had.")}},
      .subcommands = {lab_replay_command(),
                      lab_openb_command(),
                      lab_churn_command(),
                      lab_topology_command(),
                      lab_queue_command()},
      .run = run_help,
  };
}

}  // namespace gflow::cli
