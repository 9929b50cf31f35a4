// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"
#include "cli/job/subcommands.h"

namespace gflow::cli {

Command gjob_command() {
  return {
      .name = "gjob",
      .summary = "look at one job and change it",
      .usage = {"COMMAND [options] JOB..."},
      .description =
          "A job is named by its id, or @ for your newest one, @~1 for the one before it.",
      .examples = {{"gjob show 42", "everything about it"},
                   {"gjob log -f @", "the output of your newest job, as it comes"},
                   {"gjob why 42", "why it does not start, and what would help"},
                   {"gjob update 42 --priority 50", "let it start earlier"}},
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
