// SPDX-License-Identifier: Apache-2.0
#include "base/translate.h"
#include "cli/commands.h"
#include "cli/job/subcommands.h"

namespace gflow::cli {

Command gjob_command() {
  return {
      .name = "gjob",
      .summary = tr("look at one job and change it"),
      .usage = {"COMMAND [options] JOB..."},
      .description =
          tr("A job is named by its id, or @ for your newest one, @~1 for the one before it."),
      .examples = {{"gjob show 42", tr("everything about it")},
                   {"gjob log -f @", tr("the output of your newest job, as it comes")},
                   {"gjob why 42", tr("why it does not start, and what would help")},
                   {"gjob update 42 --priority 50", tr("let it start earlier")}},
      .subcommands = {job_show_command(),
                      job_why_command(),
                      job_log_command(),
                      job_wait_command(),
                      job_hold_command(),
                      job_release_command(),
                      job_update_command()},
  };
}

}  // namespace gflow::cli
