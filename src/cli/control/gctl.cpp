// SPDX-License-Identifier: Apache-2.0
#include "base/translate.h"
#include "cli/commands.h"
#include "cli/control/subcommands.h"
#include "command/context.h"
#include "command/run_command.h"

namespace gflow::cli {
Command gctl_command() {
  return {
      .name = "gctl",
      .summary = tr("look after the machine: drain GPUs, take snapshots, show settings"),
      .usage = {"COMMAND [options]"},
      .description = tr(
          "For the person who looks after the machine. Draining lets what runs go on and nothing "
          "new "
          "start; it stays until 'gctl resume', over restarts of the daemon. A snapshot is the "
          "live "
          "state as a file, for 'gflow lab replay'."),
      .examples = {{"gctl drain gpu 3 --reason 'fan is loud'", tr("take a GPU out")},
                   {"gctl resume gpu 3", tr("give it back")},
                   {"gctl snapshot -o now.json", tr("write the state down")},
                   {"gctl config show --origin", tr("the settings, and where they come from")}},
      .subcommands = {gctl_show_command(),
                      gctl_drain_command(),
                      gctl_resume_command(),
                      gctl_snapshot_command(),
                      gctl_config_command(),
                      gctl_whoami_command()},
      .run = run_help,
  };
}

}  // namespace gflow::cli
