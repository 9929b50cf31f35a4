// SPDX-License-Identifier: Apache-2.0
#include "cli/submit/options.h"

#include <array>

#include "base/translate.h"
#include "cli/described.h"
#include "cli/submit/gpu_options.h"

namespace gflow::cli {

namespace {

std::vector<Option> more_resources() {
  return {
      {.name = "cpus",
       .aliases = {"cpus-per-task"},
       .value = "N",
       .help =
           tr("CPUs to count against the machine. Without it a job counts 1 if it has no GPU, and "
              "none if it has: its GPUs are the limit then."),
       .group = tr("Resources")},
      {.name = "memory",
       .letters = "m",
       .aliases = {"mem", "max-mem", "max-memory"},
       .value = "SIZE",
       .help =
           tr("Host memory, counted and, where the machine allows, enforced: 20G, 512M; a number "
              "is MiB."),
       .group = tr("Resources")},
      {.name = "time",
       .letters = "t",
       .aliases = {"time-limit", "timelimit"},
       .value = "TIME",
       .help = tr("Most time it may run: 30 (minutes), 10:30, 4:00:00, 1-12:00:00, 1h30m."),
       .group = tr("Resources")},
      {.name = "grace",
       .value = "TIME",
       .help =
           tr("Between SIGTERM and SIGKILL when it is stopped (default 30s); a number is seconds."),
       .group = tr("Resources")},
  };
}

std::vector<Option> resources() {
  std::vector<Option> all = gpu_options();
  for (auto make : {more_resources, node_options}) {
    for (Option& option : make()) all.push_back(std::move(option));
  }
  return all;
}

std::vector<Option> when() {
  const std::string group = tr("When it starts");
  return {
      {.name = "priority",
       .letters = "p",
       .value = "N",
       .help = tr("0 to 255, higher starts first (default 10)."),
       .group = group},
      {.name = "nice",
       .value = "N",
       .help = tr("As Slurm's: lowers the priority by N (by 100 without a value)."),
       .group = group,
       .implied = "100"},
      {.name = "depends-on",
       .letters = "d",
       .aliases = {"dependency", "depends-on-all"},
       .value = "JOBS",
       .help = tr(
           "Not before these jobs have finished with exit code 0: 42, 1,2, @ (your newest), @~1, "
           "afterok:1:2."),
       .group = group,
       .complete = Complete::Job,
       .excludes = {"depends-on-any"}},
      {.name = "depends-on-any",
       .value = "JOBS",
       .help = tr("Not before one of these jobs has."),
       .group = group,
       .complete = Complete::Job},
      {.name = "no-auto-cancel",
       .help = tr("Stay in the queue if what it depends on fails; else it is cancelled."),
       .group = group},
      {.name = "begin",
       .value = "TIME",
       .help = tr("Not before: now+2h, 22:00, 2026-03-01, 2026-03-01T12:00."),
       .group = group},
      {.name = "hold", .letters = "H", .help = tr("Wait for 'gjob release'."), .group = group},
      {.name = "requeue",
       .help = tr("Run again if the machine or the job's supervisor goes down."),
       .group = group},
      {.name = "max-retries",
       .value = "N",
       .help = tr("Run again up to N times if it fails (default 0)."),
       .group = group},
      {.name = "preemptible",
       .value = "HOW",
       .help =
           tr("May be preempted by a job ahead of it: requeue (stopped and queued again, resuming "
              "from its own checkpoint; so without a value) or suspend (stays in memory and goes "
              "on later)."),
       .group = group,
       .implied = "requeue",
       .complete = Complete::Choice,
       .choices = {"requeue", "suspend", "none"}},
      {.name = "preempt-signal",
       .value = "SIGNAL",
       .help = tr("With --preemptible: sent instead of TERM, so that it can write a checkpoint "
                  "within --grace."),
       .group = group},
  };
}

std::vector<Option> identity() {
  const std::string group = tr("What it is");
  return {
      {.name = "name",
       .letters = "nJ",
       .aliases = {"job-name"},
       .value = "NAME",
       .help = tr("Its name; one is made up if there is none."),
       .group = group},
      {.name = "project",
       .letters = "P",
       .value = "NAME",
       .help = tr("Project it belongs to."),
       .group = group},
      {.name = "config",
       .value = "FILE",
       .help =
           tr("A configuration file of the job: copied now, its path is GFLOW_JOB_CONFIG in the "
              "job."),
       .group = group,
       .complete = Complete::File},
      {.name = "conda-env",
       .letters = "c",
       .value = "NAME",
       .help = tr("Activate this conda environment for it."),
       .group = group},
      {.name = "chdir",
       .letters = "D",
       .value = "DIR",
       .help = tr("Run it there (default: here)."),
       .group = group,
       .complete = Complete::Directory},
      {.name = "export",
       .value = "LIST",
       .help = tr("Variables it gets: ALL (default), NONE (only HOME, PATH and the like), NAME, "
                  "NAME=value; ALL,NAME=value adds one."),
       .group = group},
      {.name = "wrap",
       .value = "LINE",
       .help = tr("Run this line with bash instead of a command or script."),
       .group = group},
  };
}

std::vector<Option> sweeps() {
  const std::string group = tr("Many at once");
  return {
      {.name = "array",
       .value = "LIST",
       .help = tr("A job for each: 1-10, 0-100:10, 1,3,7-9, 1-100%4 (4 at once). Its number is "
                  "GFLOW_ARRAY_TASK_ID in the job."),
       .group = group,
       .excludes = {"param", "param-file"}},
      {.name = "param",
       .value = "NAME=VALUES",
       .help =
           tr("A job for each value: lr=0.1,0.01 or seed=1:5 or x=0:1:0.25; several make all "
              "combinations. {NAME} in the command becomes the value, GFLOW_PARAM_NAME has it."),
       .group = group,
       .repeatable = true},
      {.name = "param-file",
       .value = "FILE",
       .help = tr("A job for each row of a CSV file with a header."),
       .group = group,
       .complete = Complete::File},
      {.name = "name-template",
       .value = "TEXT",
       .help = tr("Names of the jobs: 'run-{lr}-{seed}'."),
       .group = group,
       .excludes = {"name"}},
      {.name = "max-concurrent",
       .value = "N",
       .help = tr("At most N of them run at once."),
       .group = group},
  };
}

std::vector<Option> submission() {
  const std::string group = tr("Submission");
  return {
      {.name = "wait",
       .letters = "W",
       .help = tr("Wait until it has ended and exit with its exit code (see 'gjob wait')."),
       .group = group},
      {.name = "parsable", .help = tr("Print the id alone."), .group = group},
      {.name = "dry-run",
       .help =
           tr("Submit nothing; say what would be, and where it would run or why it would wait."),
       .group = group},
      {.name = "verbose",
       .letters = "v",
       .help = tr("With --dry-run: every term of the scores."),
       .group = group},
      {.name = "partition",
       .value = "NAME",
       .help = tr("Accepted for Slurm's sake, and ignored."),
       .group = group,
       .hidden = true},
  };
}

/// Options of other schedulers and of later versions: refused by name, never ignored.
std::vector<Option> refused() {
  constexpr std::string_view kLater = tr_later("is not available in this version: ");
  const auto option = [&](std::string name, std::string value, std::string_view why) {
    return Option{
        .name = std::move(name), .value = std::move(value), .refused = tr(kLater) + tr(why)};
  };
  constexpr std::string_view kMail = tr_later("wait with 'gjob wait' and send it yourself");
  constexpr std::string_view kLog =
      tr_later("stdout and stderr go to the job's log, see 'gjob log'");
  std::vector<Option> all = {
      option("notify-email", "ADDRESS", kMail),
      option("notify-on", "EVENTS", kMail),
      option("mail-type", "EVENTS", kMail),
      option("mail-user", "ADDRESS", kMail),
      option("output", "FILE", kLog),
      option("error", "FILE", kLog),
      option("auto-close", "", tr_later("jobs do not run in terminal sessions")),
  };
  return all;
}

}  // namespace

std::vector<Option> submit_options() {
  std::vector<Option> all;
  for (auto make : {resources, when, identity, sweeps, submission, refused}) {
    for (Option& option : make()) all.push_back(std::move(option));
  }
  for (Option& option : described_options(all, Change::Never)) {
    option.group = tr("What it is");
    all.push_back(std::move(option));
  }
  return all;
}

}  // namespace gflow::cli
