// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/translate.h"
#include "cli/job/act.h"
#include "cli/job/subcommands.h"
#include "cli/selection.h"
#include "command/context.h"
#include "command/times.h"
#include "core/requests.h"
#include "os/clock.h"

namespace gflow::cli {

namespace {

Result<int> run_hold(const Invocation& invocation, Context& context) {
  const auto jobs = GF_TRY(resolve_jobs(invocation.words, context.daemon()));
  const Act hold{[&](const std::vector<JobId>& ids) {
    return context.daemon().act("hold", {.jobs = ids, .signal = 0, .at = {}});
  }};
  return act_on_each(
      context, jobs, hold, [](JobId job) { return tr_format("Job {} put on hold.", job.value); });
}

Result<int> run_release(const Invocation& invocation, Context& context) {
  std::optional<WallTime> at;
  if (invocation.has("at")) {
    at = GF_TRY(parse_begin(invocation.get("at"), os::now().wall, os::utc_offset));
  }
  const auto jobs = GF_TRY(resolve_jobs(invocation.words, context.daemon()));
  const Act release{[&](const std::vector<JobId>& ids) {
    return context.daemon().act("release", {.jobs = ids, .signal = 0, .at = at});
  }};
  return act_on_each(context, jobs, release, [&](JobId job) {
    if (!at) return tr_format("Job {} released back to queue.", job.value);
    return tr_format("Job {} released back to queue (not before {}).", job.value, local_text(*at));
  });
}

}  // namespace

Command job_hold_command() {
  return {
      .name = "hold",
      .summary = tr("prevent waiting jobs from starting"),
      .usage = {"JOB..."},
      .words = jobs_to_act_on(),
      .aliases = {"h"},
      .run = run_hold,
  };
}

Command job_release_command() {
  return {
      .name = "release",
      .summary = tr("return held jobs to the queue"),
      .usage = {"[--at TIME] JOB..."},
      .options = {{.name = "at",
                   .value = "TIME",
                   .help =
                       tr("Earliest start time: now+2h or 2h, 22:00, 2026-03-01T12:00. Also sets "
                          "the begin time of a queued job.")}},
      .words = jobs_to_act_on(),
      .aliases = {"r"},
      .run = run_release,
  };
}

}  // namespace gflow::cli
