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
       .help = tr("CPUs to reserve (default: 1 for a job without GPUs, 0 for a job with GPUs, "
                  "which is limited by its GPUs)."),
       .group = tr("Resources")},
      {.name = "memory",
       .letters = "m",
       .aliases = {"mem", "max-mem", "max-memory"},
       .value = "SIZE",
       .help = tr("Host memory to reserve, enforced where the machine allows: 20G, 512M; a plain "
                  "number is in MiB."),
       .group = tr("Resources")},
      {.name = "time",
       .letters = "t",
       .aliases = {"time-limit", "timelimit"},
       .value = "TIME",
       .help = tr("Time limit: 30 (minutes), 10:30, 4:00:00, 1-12:00:00, 1h30m."),
       .group = tr("Resources")},
      {.name = "grace",
       .value = "TIME",
       .help = tr("Time between SIGTERM and SIGKILL when the job is stopped; a plain number is in "
                  "seconds (default: 30s)."),
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
  const std::string group = tr("Scheduling");
  return {
      {.name = "priority",
       .letters = "p",
       .value = "N",
       .help = tr("Priority from 0 to 255; higher starts first (default: 10)."),
       .group = group},
      {.name = "nice",
       .value = "N",
       .help = tr("Lower the priority by N, as in Slurm (100 if N is omitted)."),
       .group = group,
       .implied = "100"},
      {.name = "depends-on",
       .letters = "d",
       .aliases = {"dependency", "depends-on-all"},
       .value = "JOBS",
       .help = tr("Start after all of these jobs have finished with exit code 0: 42, 1,2, @ (your "
                  "newest), @~1, afterok:1:2."),
       .group = group,
       .complete = Complete::Job,
       .excludes = {"depends-on-any"}},
      {.name = "depends-on-any",
       .value = "JOBS",
       .help = tr("Start after one of these jobs has finished with exit code 0."),
       .group = group,
       .complete = Complete::Job},
      {.name = "no-auto-cancel",
       .help = tr("Keep the job queued if a dependency fails (default: cancel it)."),
       .group = group},
      {.name = "begin",
       .value = "TIME",
       .help = tr("Earliest start time: now+2h or 2h, 22:00, 2026-03-01, 2026-03-01T12:00."),
       .group = group},
      {.name = "hold",
       .letters = "H",
       .help = tr("Submit the job on hold, until 'gjob release'."),
       .group = group},
      {.name = "requeue",
       .help = tr("Requeue the job if the machine or the job's supervisor fails."),
       .group = group},
      {.name = "max-retries",
       .value = "N",
       .help = tr("Retry the job up to N times if it fails (default: 0)."),
       .group = group},
      {.name = "preemptible",
       .value = "HOW",
       .help = tr("Allow jobs ahead to preempt the job: requeue stops it and queues it again, to "
                  "resume from its own checkpoint; suspend keeps it in memory and continues it "
                  "later (default: requeue)."),
       .group = group,
       .implied = "requeue",
       .complete = Complete::Choice,
       .choices = {"requeue", "suspend", "none"}},
      {.name = "preempt-signal",
       .value = "SIGNAL",
       .help = tr("With --preemptible: signal sent instead of TERM, so that the job can write a "
                  "checkpoint within --grace."),
       .group = group},
  };
}

std::vector<Option> identity() {
  const std::string group = tr("Job");
  return {
      {.name = "name",
       .letters = "nJ",
       .aliases = {"job-name"},
       .value = "NAME",
       .help = tr("Job name (default: a generated one)."),
       .group = group},
      {.name = "project",
       .letters = "P",
       .value = "NAME",
       .help = tr("Project the job belongs to."),
       .group = group},
      {.name = "config",
       .value = "FILE",
       .help = tr("Configuration file for the job, copied at submission; GFLOW_JOB_CONFIG in the "
                  "job is its path."),
       .group = group,
       .complete = Complete::File},
      {.name = "conda-env",
       .letters = "c",
       .value = "NAME",
       .help = tr("Activate this conda environment for the job."),
       .group = group},
      {.name = "chdir",
       .letters = "D",
       .value = "DIR",
       .help = tr("Working directory of the job (default: the current directory)."),
       .group = group,
       .complete = Complete::Directory},
      {.name = "export",
       .value = "LIST",
       .help = tr("Environment variables to pass: ALL, NONE (only HOME, PATH and the like), NAME "
                  "or NAME=value; ALL,NAME=value adds one (default: ALL)."),
       .group = group},
      {.name = "image",
       .value = "IMAGE",
       .help = tr("In a Kubernetes cluster: image of the job's container (default: that of "
                  "GFLOW_KUBE_IMAGE)."),
       .group = group},
      {.name = "launch",
       .value = "HOW",
       .help = tr("Run the command as one process for each GPU of the job, with RANK, LOCAL_RANK, "
                  "WORLD_SIZE, MASTER_ADDR and MASTER_PORT set (ddp), or through torchrun or "
                  "accelerate; all of them end when one fails."),
       .group = group,
       .complete = Complete::Choice,
       .choices = {"ddp", "torchrun", "accelerate"}},
      {.name = "wrap",
       .value = "LINE",
       .help = tr("Run this line with bash instead of a command or script."),
       .group = group},
  };
}

std::vector<Option> sweeps() {
  const std::string group = tr("Arrays and sweeps");
  return {
      {.name = "array",
       .value = "LIST",
       .help = tr("Submit one job for each index: 1-10, 0-100:10, 1,3,7-9, 1-100%4 (4 at once). "
                  "GFLOW_ARRAY_TASK_ID in the job is its index."),
       .group = group,
       .excludes = {"param", "param-file"}},
      {.name = "param",
       .value = "NAME=VALUES",
       .help = tr("Submit one job for each value: lr=0.1,0.01, seed=1:5 or x=0:1:0.25; repeat for "
                  "all combinations. {NAME} in the command is replaced by the value, and "
                  "GFLOW_PARAM_NAME is set to it."),
       .group = group,
       .repeatable = true},
      {.name = "param-file",
       .value = "FILE",
       .help = tr("Submit one job for each row of a CSV file with a header."),
       .group = group,
       .complete = Complete::File},
      {.name = "name-template",
       .value = "TEXT",
       .help = tr("Names of the jobs, such as 'run-{lr}-{seed}'."),
       .group = group,
       .excludes = {"name"}},
      {.name = "max-concurrent",
       .value = "N",
       .help = tr("Run at most N of these jobs at once."),
       .group = group},
  };
}

std::vector<Option> submission() {
  const std::string group = tr("Submission");
  return {
      {.name = "wait",
       .letters = "W",
       .help = tr("Wait until the job has ended and exit with its exit code (see 'gjob wait')."),
       .group = group,
       .excludes = {"dry-run"}},
      {.name = "parsable",
       .help = tr("Print only the job id."),
       .group = group,
       .excludes = {"dry-run", "json"}},
      {.name = "dry-run",
       .help = tr("Submit nothing; print what would be submitted, and where it would run or why it "
                  "would wait."),
       .group = group},
      {.name = "verbose",
       .letters = "v",
       .help = tr("With --dry-run: print every term of the scores."),
       .group = group,
       .needs = "dry-run"},
      {.name = "partition",
       .value = "NAME",
       .help = tr("Accepted for compatibility with Slurm and ignored."),
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
  constexpr std::size_t kRoom = 96;  // for all of them: they are large, and moved where it is short
  std::vector<Option> all;
  all.reserve(kRoom);
  for (auto make : {resources, when, identity, sweeps, submission, refused}) {
    for (Option& option : make()) all.push_back(std::move(option));
  }
  for (Option& option : described_options(all, Change::Never)) {
    option.group = tr("Job");
    all.push_back(std::move(option));
  }
  return all;
}

}  // namespace gflow::cli
