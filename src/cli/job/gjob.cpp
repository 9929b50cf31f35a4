// SPDX-License-Identifier: Apache-2.0
#include "base/translate.h"
#include "cli/commands.h"
#include "cli/job/subcommands.h"

namespace gflow::cli {

Command gjob_command() {
  return {
      .name = "gjob",
      .summary = tr("inspect, change, hold and wait for jobs"),
      .usage = {"COMMAND [options] JOB..."},
      .description = tr("JOB is a job id, @ for your newest job, or @~1 for the one before it."),
      .examples = {{"gjob show 42", tr("show all details of a job")},
                   {"gjob log -f @", tr("follow the output of your newest job")},
                   {"gjob why 42", tr("explain why it waits and what would help")},
                   {"gjob update 42 --priority 50", tr("raise its priority")}},
      .subcommands = {job_show_command(),
                      job_why_command(),
                      job_log_command(),
                      job_wait_command(),
                      job_hold_command(),
                      job_release_command(),
                      job_suspend_command(),
                      job_resume_command(),
                      job_move_command(),
                      job_update_command()},
      .elsewhere = {{"signal", "gcancel --signal SIGNAL JOB"}, {"cancel", "gcancel JOB"}},
  };
}

}  // namespace gflow::cli
