// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <set>

#include "base/translate.h"
#include "cli/job/act.h"
#include "cli/job/subcommands.h"
#include "cli/selection.h"
#include "command/context.h"

namespace gflow::cli {

namespace {

Result<int> run_suspend(const Invocation& invocation, Context& context) {
  const auto jobs = GF_TRY(resolve_jobs(invocation.words, context.daemon()));
  const Act suspend{[&](const std::vector<JobId>& ids) {
    return context.daemon().act("suspend", {.jobs = ids, .signal = 0, .at = {}});
  }};
  return act_on_each(
      context,
      jobs,
      suspend,
      [](JobId job) { return tr_format("Job {} suspended.", job.value); },
      [](JobId job) { return tr_format("Job {} has already been suspended.", job.value); });
}

Result<int> run_resume(const Invocation& invocation, Context& context) {
  const auto jobs = GF_TRY(resolve_jobs(invocation.words, context.daemon()));
  const Act resume{[&](const std::vector<JobId>& ids) {
    return context.daemon().act("resume", {.jobs = ids, .signal = 0, .at = {}});
  }};
  std::optional<std::set<JobId>> waiting;
  return act_on_each(
      context,
      jobs,
      resume,
      [&](JobId job) {
        if (!waiting) waiting = those_in(context, jobs, {Status::Suspended});
        return waiting->contains(job)
                   ? tr_format("Job {} resumes when there is room for it.", job.value)
                   : tr_format("Job {} resumed.", job.value);
      },
      [](JobId job) { return tr_format("Job {} was not suspended by hand.", job.value); });
}

}  // namespace

Command job_suspend_command() {
  return {
      .name = "suspend",
      .summary = tr("suspend running jobs, which keep their memory"),
      .usage = {"JOB..."},
      .description = tr(
          "A suspended job keeps its host and GPU memory and releases its GPU compute and CPUs. "
          "It continues only after 'gjob resume'; the time in between does not count towards "
          "its time limit. A job that did not declare its GPU memory keeps all of it. Only where "
          "the driver can, and for a job with one NVIDIA GPU, it is taken to host memory."),
      .words = jobs_to_act_on(),
      .run = run_suspend,
  };
}

Command job_resume_command() {
  return {
      .name = "resume",
      .summary = tr("continue suspended jobs"),
      .usage = {"JOB..."},
      .description = tr("A job continues at once, or as soon as the jobs that got its GPUs or CPUs "
                        "meanwhile have released them."),
      .words = jobs_to_act_on(),
      .run = run_resume,
  };
}

}  // namespace gflow::cli
