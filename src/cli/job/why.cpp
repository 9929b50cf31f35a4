// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "api/explanation.h"
#include "base/text.h"
#include "base/translate.h"
#include "cli/job/job_text.h"
#include "cli/job/print_jobs.h"
#include "cli/job/subcommands.h"
#include "command/context.h"
#include "command/wrap.h"
#include "os/clock.h"

namespace gflow::cli {

namespace {

Result<int> run_why(const Invocation& invocation, Context& context) {
  return print_jobs(invocation, context, [&context](JobId id) -> Result<std::string> {
    api::Explanation explanation = GF_TRY(context.daemon().explain(id));
    if (context.json) return api::write(explanation) + '\n';
    if (context.columns > 0) {
      std::string& name = explanation.job.spec.name;
      name = cut_middle(name, context.columns / 2);
    }
    return fit_lines(why_text(explanation, {os::now().wall, os::utc_offset}), context.columns);
  });
}

}  // namespace

Command job_why_command() {
  return {
      .name = "why",
      .summary = tr("explain why a job waits and what would start it sooner"),
      .usage = {"JOB..."},
      .description = tr(
          "Lists everything that keeps a job from starting, with numbers: who holds the resources "
          "it needs and until when, what is used outside gflow, and which job is ahead."),
      .words = {.name = "JOB...",
                .help = tr("Job ids, such as 42 or 1-5; @ is your newest job."),
                .least = 1,
                .most = kAnyNumber,
                .complete = Complete::Job},
      .run = run_why,
  };
}

}  // namespace gflow::cli
