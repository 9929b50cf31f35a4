// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>

#include "api/json.h"
#include "base/text.h"
#include "base/translate.h"
#include "cli/described.h"
#include "cli/job/act.h"
#include "cli/job/subcommands.h"
#include "cli/selection.h"
#include "cli/submit/gpu_options.h"
#include "cli/submit/values.h"
#include "command/context.h"
#include "core/requests.h"

namespace gflow::cli {

namespace {

constexpr std::string_view kFixed =
    tr_later("cannot be changed after submission; cancel the job and submit it again");

std::vector<Option> amount_options() {
  return {
      {.name = "name",
       .letters = "nJ",
       .aliases = {"job-name"},
       .value = "NAME",
       .help = tr("Job name.")},
      {.name = "cpus", .value = "N", .help = tr("Number of CPUs.")},
      {.name = "memory",
       .letters = "m",
       .aliases = {"memory-limit", "mem", "max-mem", "max-memory"},
       .value = "SIZE",
       .help = tr("Host memory: 20G, 512M; a plain number is in MiB.")},
      {.name = "clear-memory-limit",
       .help = tr("Remove the memory limit."),
       .excludes = {"memory"}},
      {.name = "priority",
       .letters = "p",
       .value = "N",
       .help = tr("Priority from 0 to 255; higher starts first.")},
      {.name = "time-limit",
       .letters = "t",
       .aliases = {"time", "timelimit"},
       .value = "TIME",
       .help = tr("Time limit: 30 (minutes), 4:00:00, 1h30m. Also for running jobs.")},
      {.name = "clear-time-limit",
       .help = tr("Remove the time limit."),
       .excludes = {"time-limit"}},
  };
}

std::vector<Option> dependency_options() {
  return {
      {.name = "depends-on",
       .letters = "d",
       .aliases = {"dependency", "depends-on-all"},
       .value = "JOBS",
       .help = tr("Start after all of these jobs have finished; '' removes the dependencies."),
       .excludes = {"depends-on-any"}},
      {.name = "depends-on-any",
       .value = "JOBS",
       .help = tr("Start after one of these jobs has finished.")},
      {.name = "auto-cancel-on-dep-failure",
       .aliases = {"auto-cancel"},
       .help = tr("With --depends-on: cancel the job if they fail (default)."),
       .excludes = {"no-auto-cancel-on-dep-failure"}},
      {.name = "no-auto-cancel-on-dep-failure",
       .aliases = {"no-auto-cancel"},
       .help = tr("With --depends-on: keep the job queued if they fail.")},
  };
}

std::vector<Option> preemption_options() {
  return {
      {.name = "max-retries", .value = "N", .help = tr("Retry the job up to N times if it fails.")},
      {.name = "clear-max-retries",
       .help = tr("Do not retry the job."),
       .excludes = {"max-retries"}},
      {.name = "clear-gpu-memory-limit",
       .help = tr("Remove the required GPU memory."),
       .excludes = {"gpu-memory", "shared"}},
      {.name = "preemptible",
       .value = "HOW",
       .help = tr("How a job ahead may preempt this one: requeue, suspend or none."),
       .implied = "requeue",
       .complete = Complete::Choice,
       .choices = {"requeue", "suspend", "none"},
       .field = "preemption"},
      {.name = "preempt-signal",
       .value = "SIGNAL",
       .help = tr("With requeue: signal sent on preemption instead of TERM.")},
      {.name = "clear-preempt-signal",
       .help = tr("Send TERM on preemption (default)."),
       .excludes = {"preempt-signal"}},
      {.name = "max-concurrent",
       .value = "N",
       .help = tr("Maximum number of running jobs of its group.")},
      {.name = "clear-max-concurrent",
       .help = tr("Remove the group limit."),
       .excludes = {"max-concurrent"}},
  };
}

std::vector<Option> options() {
  std::vector<Option> all = amount_options();
  for (auto make : {dependency_options, preemption_options}) {
    for (Option& option : make()) all.push_back(std::move(option));
  }
  for (const auto& [name, letters, value] : {std::tuple{"command", "c", "COMMAND"},
                                             std::tuple{"script", "s", "FILE"},
                                             std::tuple{"conda-env", "e", "NAME"},
                                             std::tuple{"clear-conda-env", "", ""},
                                             std::tuple{"param", "", "NAME=VALUE"}}) {
    all.push_back({.name = name, .letters = letters, .value = value, .refused = tr(kFixed)});
  }
  for (auto make : {gpu_options, node_options}) {
    for (Option& option : make()) {
      option.group.clear();
      // What is not given stays as it is: the defaults are those of gbatch.
      if (option.name == "gpus") {
        option.help =
            tr("GPUs, as for 'gbatch --gpus'. Of a running job only the upper end of a range.");
        option.field = "gpu_share_limit_parts";
      }
      if (option.name == "nodes") option.help = tr("Number of nodes, with all of that on each.");
      all.push_back(std::move(option));
    }
  }
  for (Option& option : described_options(all, Change::Pending)) all.push_back(std::move(option));
  return all;
}

Result<void> read_amounts(const Invocation& invocation, JobChanges& changes) {
  if (invocation.has("cpus")) {
    changes.set(&Request::cpus, GF_TRY(read_count("--cpus", invocation.get("cpus"))));
  }
  if (invocation.has("memory")) {
    changes.set(&Request::memory, GF_TRY(parse_memory(invocation.get("memory"))));
  }
  if (invocation.has("clear-memory-limit")) changes.set(&Request::memory, Memory{});
  if (invocation.has("priority"))
    changes.set(&JobSpec::priority, GF_TRY(parse_priority(invocation.get("priority"))));
  if (invocation.has("time-limit")) {
    changes.set(&JobSpec::time_limit, GF_TRY(read_time_limit(invocation.get("time-limit"))));
  }
  if (invocation.has("clear-time-limit")) changes.set(&JobSpec::time_limit, std::nullopt);
  if (invocation.has("preemptible")) {
    changes.set(&JobSpec::preemption, GF_TRY(read_preemption(invocation.get("preemptible"))));
  }
  if (invocation.has("preempt-signal")) {
    changes.set(&JobSpec::preempt_signal,
                GF_TRY(read_preempt_signal(invocation.get("preempt-signal"))));
  }
  if (invocation.has("clear-preempt-signal")) changes.set(&JobSpec::preempt_signal, 0);
  if (invocation.has("max-retries")) {
    changes.set(&JobSpec::max_retries,
                GF_TRY(read_count("--max-retries", invocation.get("max-retries"))));
  }
  if (invocation.has("clear-max-retries")) changes.set(&JobSpec::max_retries, 0);
  if (invocation.has("max-concurrent")) {
    changes.set(&JobSpec::max_concurrent,
                GF_TRY(read_count("--max-concurrent", invocation.get("max-concurrent"))));
  }
  if (invocation.has("clear-max-concurrent")) changes.set(&JobSpec::max_concurrent, 0);
  return {};
}

Result<void> read_dependencies(const Invocation& invocation,
                               Context& context,
                               JobChanges& changes) {
  const bool any = invocation.has("depends-on-any");
  const bool wants = any || invocation.has("depends-on");
  if (!wants) {
    if (invocation.has("auto-cancel-on-dep-failure") ||
        invocation.has("no-auto-cancel-on-dep-failure")) {
      return fail(Code::Usage, tr("--auto-cancel and --no-auto-cancel require --depends-on"));
    }
    return {};
  }
  const std::string text = invocation.get(any ? "depends-on-any" : "depends-on");
  Dependencies wanted;
  if (!trim(text).empty()) {
    wanted = GF_TRY(read_dependency(
        text, any ? DependencyMode::Any : DependencyMode::All, newest_of(context.daemon())));
  }
  wanted.auto_cancel = !invocation.has("no-auto-cancel-on-dep-failure");
  changes.set(&JobSpec::dependencies, wanted);
  return {};
}

/// Options that change a part of what the job asks for: the rest of it has to be asked of the
/// daemon.
bool changes_request(const Invocation& invocation) {
  return std::ranges::any_of(std::array{"gpus",
                                        "gpu-memory",
                                        "gpu-model",
                                        "shared",
                                        "clear-gpu-memory-limit",
                                        "nodes",
                                        "constraint"},
                             [&](const char* name) { return invocation.has(name); });
}

/// What a job asks for now, changed by the options. --gpus replaces everything said of its GPUs but
/// their memory.
Result<Request> changed_request(const Invocation& invocation,
                                const GpuResources& resources,
                                Request request) {
  if (invocation.has("gpu-memory") || invocation.has("clear-gpu-memory-limit")) {
    request.gpu_memory = {};
  }
  if (invocation.has("gpu-model") && !invocation.has("gpus")) {
    request.vendor.clear();
    request.models.clear();
  }
  if (invocation.has("constraint")) request.selector.clear();
  GF_CHECK(read_gpu_options(invocation, resources, request));
  GF_CHECK(read_node_options(invocation, request));
  if (request.gpus == 0) request.gpu_memory = {};
  GF_CHECK(normalise(request));
  return request;
}

Result<int> run_update(const Invocation& invocation, Context& context) {
  JobChanges changes;
  if (invocation.has("name")) {
    changes.set(&JobSpec::name, GF_TRY(check_name(invocation.get("name"))));
  }
  GF_CHECK(read_amounts(invocation, changes));
  GF_CHECK(read_dependencies(invocation, context, changes));
  GF_CHECK(read_described(invocation, changes));
  const bool asks_otherwise = changes_request(invocation);
  if (changes.empty() && !asks_otherwise) {
    return fail(Code::Usage, tr("nothing to change; give an option such as --priority 50"));
  }
  const auto jobs = GF_TRY(resolve_jobs(invocation.words, context.daemon()));
  const GpuResources resources = GF_TRY(context.gpu_config()).resources;
  const Act update{[&](const std::vector<JobId>& ids) -> Result<std::vector<JobId>> {
    api::UpdateRequest one{ids, changes};
    if (!asks_otherwise) return context.daemon().update(one);
    for (const JobId id : ids) {
      const api::JobView job = GF_TRY(context.daemon().job(id));
      one.jobs = {id};
      // What was asked of CPUs and memory stays on top of the rest.
      Request wanted = GF_TRY(changed_request(invocation, resources, job.spec.request));
      if (changes.has(&Request::cpus)) wanted.cpus = changes.to().request.cpus;
      if (changes.has(&Request::memory)) wanted.memory = changes.to().request.memory;
      one.changes.set(&JobSpec::request, std::move(wanted));
      GF_TRY(context.daemon().update(one));
    }
    return ids;
  }};
  return act_on_each(context, jobs, update, [](JobId job) {
    return tr_format("Job {} updated successfully.", job.value);
  });
}

}  // namespace

Command job_update_command() {
  const std::vector<Option> all = options();
  return {
      .name = "update",
      .summary = tr("change waiting or running jobs"),
      .usage = {"[options] JOB..."},
      .description =
          tr_format("Changes the request of a waiting job. What can also be changed while a job "
                    "runs: {}. To change when a job may start, use 'gjob release --at'.",
                    join(changing_options(all, Change::Active), ", ")),
      .options = all,
      .words = {.name = "JOB...",
                .help = tr("Job ids, such as 42 or 1-5; @ is your newest job."),
                .least = 1,
                .most = kAnyNumber,
                .complete = Complete::Job},
      .examples = {{"gjob update 42 --gpus 1 --time-limit 2h", tr("reduce the request")}},
      .aliases = {"u"},
      .run = run_update,
  };
}

}  // namespace gflow::cli
