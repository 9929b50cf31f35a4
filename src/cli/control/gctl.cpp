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
      .summary = tr("administer the machine: drain GPUs, take snapshots, change settings"),
      .usage = {"COMMAND [options]"},
      .description =
          tr("Administers the machine. A drained GPU or node finishes its running jobs and gets no "
             "new ones until 'gctl resume', across restarts of the daemon. A snapshot is the live "
             "state of the daemon, saved to a file for 'gflow lab replay'."),
      .examples = {{"gctl drain gpu 3 --reason 'fan is loud'", tr("drain a GPU")},
                   {"gctl resume gpu 3", tr("return it to service")},
                   {"gctl defrag", tr("show which moves would start jobs that wait")},
                   {"gctl snapshot -o now.json", tr("save a snapshot")},
                   {"gctl config show --origin", tr("show the settings and where each comes from")},
                   {"gctl config set limits.allocation_ttl 8h", tr("change one")}},
      .subcommands = {gctl_show_command(),
                      gctl_drain_command(),
                      gctl_resume_command(),
                      gctl_defrag_command(),
                      gctl_snapshot_command(),
                      gctl_config_command(),
                      gctl_token_command(),
                      gctl_remote_command(),
                      gctl_whoami_command()},
      .run = run_help,
  };
}

}  // namespace gflow::cli
