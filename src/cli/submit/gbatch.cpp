// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <ostream>

#include "api/json.h"
#include "base/text.h"
#include "base/translate.h"
#include "cli/commands.h"
#include "cli/job/job_text.h"
#include "cli/job/wait.h"
#include "cli/submit/options.h"
#include "cli/submit/request.h"
#include "cli/submit/script_options.h"
#include "cli/submit/values.h"
#include "command/context.h"
#include "command/wrap.h"
#include "core/image_variable.h"
#include "core/requests.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/random.h"
#include "os/user.h"

namespace gflow::cli {

namespace {

Result<Environment> base_environment(const std::string& conda) {
  if (conda.empty()) return own_environment();
  return conda_environment(conda);
}

/// An empty one, too; one that is not there is left out.
void take_variable(const Environment& all, const std::string& name, Environment& environment) {
  const auto is_it = [&name](const std::string& one) { return one.starts_with(name + "="); };
  const auto its = std::ranges::find_if(all, is_it);
  if (its != all.end()) set_variable(environment, name, its->substr(name.size() + 1));
}

/// A container has that of its image: nothing of this machine's but what is named.
Result<Environment> cluster_environment(const Invocation& invocation) {
  Environment environment;
  if (invocation.has("export")) {
    const Export wanted = GF_TRY(read_export(invocation.get("export")));
    const Environment all = own_environment();
    if (wanted.base == Export::Base::All) {
      environment = exported(all, wanted);
    } else {
      for (const std::string& name : wanted.names) {
        take_variable(all, name, environment);
      }
      for (const std::string& one : wanted.set) {
        const std::size_t equals = one.find('=');
        set_variable(environment, one.substr(0, equals), one.substr(equals + 1));
      }
    }
  }
  if (invocation.has("image")) set_variable(environment, kImageVariable, invocation.get("image"));
  GF_CHECK(check_size(environment));
  return environment;
}

/// Jobs run in containers, where nothing of this machine is.
bool is_of_containers(const Context& context) {
  return context.is_cluster() && !context.is_slurm();
}

Result<Environment> read_environment(const Invocation& invocation, const Context& context) {
  if (is_of_containers(context)) return cluster_environment(invocation);
  Export wanted;
  if (invocation.has("export")) wanted = GF_TRY(read_export(invocation.get("export")));
  const Environment all = GF_TRY(base_environment(invocation.get("conda-env")));
  Environment environment = exported(all, wanted);
  if (context.is_slurm() && invocation.has("partition")) {
    set_variable(environment, "SBATCH_PARTITION", invocation.get("partition"));
  }
  GF_CHECK(check_size(environment));
  return environment;
}

/// The directory one is in, by the name one went there by where that is still right.
Result<std::string> current_directory() {
  std::error_code error;
  const std::string real = std::filesystem::current_path(error).string();
  if (error) return fail(Code::NotFound, tr("the current directory no longer exists"));
  const std::string named = os::environment("PWD").value_or("");
  if (named.starts_with('/') && std::filesystem::equivalent(named, real, error) && !error) {
    return named;
  }
  return real;
}

/// In a cluster that of the image: no folder of this machine is there.
Result<std::string> work_directory(const Invocation& invocation, const Context& context) {
  if (is_of_containers(context)) {
    if (!invocation.has("chdir")) return "/";
    std::string wanted = invocation.get("chdir");
    if (wanted.starts_with('/')) return wanted;
    return fail(
        Code::Usage,
        tr_format("--chdir: '{}' has to be an absolute path in the container", printable(wanted)));
  }
  const std::string here = GF_TRY(current_directory());
  if (!invocation.has("chdir")) return here;
  const std::string wanted = (std::filesystem::path(here) / invocation.get("chdir")).string();
  if (!os::is_directory(wanted)) {
    return fail(Code::NotFound,
                tr_format("--chdir: there is no directory '{}'", printable(wanted)));
  }
  return wanted;
}

Result<void> add_config(const Invocation& invocation, Payload& payload) {
  if (!invocation.has("config")) return {};
  const std::string path = invocation.get("config");
  auto content = os::read_file(path);
  if (!content) return with_context(content.error(), "--config");
  payload.config = *std::move(content);
  payload.config_name = std::filesystem::path(path).filename().string();
  return {};
}

/// The job's supervisor reads it (shim/launch.h).
Result<void> add_launch(const Invocation& invocation, const JobSpec& spec, Payload& payload) {
  if (!invocation.has("launch")) return {};
  if (spec.request.nodes > 1) {
    return fail(Code::Usage, tr("--launch starts processes on one node; leave out --nodes"));
  }
  set_variable(payload.environment, "GFLOW_LAUNCH", invocation.get("launch"));
  return {};
}

Result<Sweep> read_sweep(const Invocation& invocation, JobSpec& spec) {
  Sweep sweep;
  if (invocation.has("array")) {
    const Array array = GF_TRY(read_array(invocation.get("array")));
    sweep.tasks = array.tasks;
    if (array.max_concurrent && !invocation.has("max-concurrent")) {
      spec.max_concurrent = *array.max_concurrent;
    }
  }
  std::string csv;
  if (invocation.has("param-file")) {
    csv = GF_TRY(os::read_file(invocation.get("param-file")));
    if (trim(csv).empty()) return fail(Code::Usage, tr("--param-file: the file is empty"));
  }
  sweep.points = GF_TRY(sweep_points(invocation.all("param"), csv));
  sweep.name_template = invocation.get("name-template");
  return sweep;
}

std::uint32_t current_umask() {
  const mode_t mask = ::umask(077);
  ::umask(mask);
  return mask;
}

void say_ignored(Context& context, const ScriptOptions& script) {
  if (script.ignored.empty()) return;
  context.note(tr_format("ignoring #SBATCH options that do not apply to gflow: {}",
                         join(script.ignored, ", ")));
}

struct Script {
  Invocation invocation;  ///< with what the script says taken over
  Environment environment;
  Source source;
};

/// The command line together with the directives of the script it names.
Result<Script> read_script(const Invocation& typed,
                           Context& context,
                           const GpuResources& resources) {
  Script script{typed, GF_TRY(read_environment(typed, context)), {}};
  script.source =
      GF_TRY(is_of_containers(context) ? read_source(typed, own_environment(), Programs::Elsewhere)
                                       : read_source(typed, script.environment, Programs::Here));
  if (!script.source.script) return script;
  const ScriptOptions said =
      GF_TRY(script_options(*typed.command, script.source.path, *script.source.script, resources));
  if (!context.is_slurm()) say_ignored(context, said);  // sbatch reads them, too
  take_over(script.invocation, said.invocation);
  const auto said_of_environment = {"conda-env", "export", "image", "partition"};
  const auto is_said = [&said](const char* option) { return said.invocation.has(option); };
  if (std::ranges::any_of(said_of_environment, is_said)) {
    script.environment = GF_TRY(read_environment(script.invocation, context));
  }
  return script;
}

/// What is of one machine is not for a cluster, and the other way round.
Result<void> check_where(const Invocation& invocation, const Context& context) {
  if (context.is_slurm() && invocation.has("launch")) {
    return fail(Code::Usage,
                tr("--launch is not for Slurm: have the script start its processes with srun"));
  }
  if (!is_of_containers(context)) {
    if (!invocation.has("image")) return {};
    return fail(Code::Usage, tr("--image is for jobs of a cluster (--server kube)"));
  }
  if (invocation.has("conda-env")) {
    return fail(Code::Usage,
                tr("--conda-env is of this machine: a job of a cluster has what is in its image"));
  }
  if (invocation.has("launch")) {
    return fail(Code::Usage,
                tr("--launch is not for a cluster yet: have the command start its processes, as "
                   "'torchrun --standalone' does"));
  }
  return {};
}

Result<api::SubmitRequest> read_submission(const Invocation& typed, Context& context) {
  const GpuResources resources = GF_TRY(context.gpu_config()).resources;
  Script script = GF_TRY(read_script(typed, context, resources));
  const Invocation& invocation = script.invocation;
  const WallTime now = os::now().wall;
  GF_CHECK(check_where(invocation, context));
  const std::string directory = GF_TRY(work_directory(invocation, context));
  JobSpec spec = GF_TRY(read_spec(
      invocation, {directory, now, os::utc_offset, newest_of(context.daemon()), resources}));
  spec.command = script.source.line;
  Payload payload;
  payload.argv = std::move(script.source.argv);
  payload.script = std::move(script.source.script);
  payload.environment = std::move(script.environment);
  payload.umask = current_umask();
  GF_CHECK(add_launch(invocation, spec, payload));
  GF_CHECK(add_config(invocation, payload));
  const Sweep sweep = GF_TRY(read_sweep(invocation, spec));
  if (invocation.has("partition") && !context.is_slurm())
    context.note(tr("there are no partitions; --partition is ignored"));
  api::SubmitRequest request;
  request.items = expand(spec, payload, sweep, "group-" + os::random_hex(4));
  if (context.is_cluster()) request.items = GF_TRY(tasks_apart(request.items));
  for (const api::SubmitRequest::Item& item : request.items) {
    const std::string& name = item.spec.name;
    if (name.empty()) continue;
    const auto& tasks = item.tasks;
    GF_CHECK(check_name(tasks ? task_name(name, tasks->number(tasks->count - 1)) : name));
  }
  if (request.count() == 1 && invocation.has("max-concurrent")) {
    context.note(tr("--max-concurrent is ignored: there is only one job"));
  }
  request.idempotency_key = os::random_hex(16);
  return request;
}

Result<void> check_body_size(const api::SubmitRequest& request) {
  constexpr std::size_t kMax = 16U << 20;  // what the server takes: server/admission.h
  const std::size_t size = api::write(request).size();
  if (size <= kMax) return {};
  return fail(Code::Exhausted,
              tr_format("the submission is {} MiB, the maximum is {}: submit fewer jobs at once, "
                        "or a smaller environment (--export NONE)",
                        size >> 20,
                        kMax >> 20));
}

std::vector<JobId> ids_of(const api::SubmitAnswer& answer) {
  std::vector<JobId> ids;
  for (const api::SubmitAnswer::Item& item : answer.items) {
    for (std::uint64_t i = 0; i < item.count; ++i) ids.emplace_back(item.id.value + i);
  }
  return ids;
}

void print_ids(const Invocation& invocation, Context& context, const api::SubmitAnswer& answer) {
  if (context.json) return;
  for (const JobId id : ids_of(answer)) {
    if (!invocation.has("parsable")) context.out << "Submitted batch job ";
    context.out << id.value << '\n';
  }
  context.out.flush();
}

/// `group`: what the jobs belong to; "" if nothing.
void print_group(Context& context, const std::string& group) {
  if (context.json || group.empty()) return;
  context.note(tr_format("group {}: 'gqueue --group {}' lists its jobs", group, group));
}

/// Nobody expects of a job that was taken that it is over.
void print_cancelled(Context& context, const api::SubmitAnswer& answer) {
  for (const api::SubmitAnswer::Item& item : answer.items) {
    if (item.status != Status::Cancelled) continue;
    context.note(
        tr_format("job {} was cancelled at once: {}", item.id.value, printable(item.reason)));
    return;  // of the others it is the same
  }
}

void print_advice(Context& context, const api::SubmitAnswer& answer) {
  if (answer.items.empty() || answer.items.front().advice.empty()) return;
  context.hint(printable(answer.items.front().advice));
}

/// A cluster is asked for one job after the other: it is heard of them meanwhile.
Result<api::SubmitAnswer> submit(const Invocation& invocation,
                                 Context& context,
                                 const api::SubmitRequest& request) {
  constexpr std::size_t kAtOnce = 50;
  const bool is_in_parts = context.is_cluster() && request.items.size() > kAtOnce;
  const std::string& group = request.items.front().spec.group;
  api::SubmitAnswer all;
  for (const api::SubmitRequest& part :
       is_in_parts ? in_parts(request, kAtOnce) : std::vector{request}) {
    const auto answer = context.daemon().submit(part);
    if (!answer) {
      if (context.is_cluster()) print_group(context, group);  // some of them may be there
      return std::unexpected(answer.error());
    }
    print_ids(invocation, context, *answer);
    all.items.insert(all.items.end(), answer->items.begin(), answer->items.end());
  }
  if (context.json) {
    context.out << api::write(all) << '\n';
  } else {
    print_group(context, group);
    print_cancelled(context, all);
    print_advice(context, all);
  }
  return all;
}

Result<int> wait_for_all(Context& context, const api::SubmitAnswer& answer) {
  const auto ended = GF_TRY(wait_for(context, ids_of(answer), std::nullopt));
  for (const api::JobView& job : ended) {
    context.hint(tr_format("Job {} {}", job.id.value, ended_text(job)));
  }
  if (const std::string advice = failure_advice(ended); !advice.empty()) context.hint(advice);
  return exit_code_of(ended);
}

/// What would be submitted and, where a daemon answers, where it would run. As JSON a document a
/// line: Submit, Placement.
Result<int> dry_run(const api::SubmitRequest& request, Terms terms, Context& context) {
  const auto print_request = [&] {
    context.out << (context.json ? api::write(request) + "\n"
                                 : dry_run_text(request, context.columns));
  };
  const JobSpec& first = request.items.front().spec;
  GF_CHECK(check_body_size(request));
  // What is refused would not be submitted: nothing is printed before the daemon has said so.
  if (const auto taken = context.daemon().check(request); !taken) {
    if (taken.error().code != Code::Unreachable) return std::unexpected(taken.error());
    print_request();
    context.note(tr("no daemon answers: cannot tell where the job would run"));
    return 0;
  }
  api::PlaceRequest asked{.request = first.request,
                          .name = first.name,
                          .priority = first.priority,
                          .time_limit = first.time_limit,
                          .hold = first.hold,
                          .begin = first.begin,
                          .dependencies = first.dependencies};
  asked.jobs = static_cast<int>(std::min<std::size_t>(request.count(), api::kMaxPlaceJobs));
  asked.group = first.group;
  asked.max_concurrent = first.max_concurrent;
  const auto placement = context.daemon().place(asked);
  if (!placement) return std::unexpected(placement.error());
  if (context.json) {
    print_request();
    context.out << api::write(*placement) << '\n';
    return 0;
  }
  const api::MachineView machine = GF_TRY(context.daemon().machine());
  print_request();
  const Clocks clocks{os::now().wall, os::utc_offset};
  const DryRun dry{request.count(), terms, context.columns};
  context.out << fit_lines(placement_text(*placement, machine, dry, clocks), dry.columns);
  return 0;
}

Result<int> run_gbatch(const Invocation& invocation, Context& context) {
  if (!invocation.has("dry-run") && !context.is_cluster()) {
    GF_CHECK(context.needs_own_machine(
        tr("directory, script and environment of a job are where it runs; log in there")));
  }
  const api::SubmitRequest request = GF_TRY(read_submission(invocation, context));
  if (invocation.has("dry-run")) {
    return dry_run(request, invocation.has("verbose") ? Terms::Shown : Terms::Left, context);
  }
  GF_CHECK(check_body_size(request));
  const api::SubmitAnswer answer = GF_TRY(submit(invocation, context, request));
  if (invocation.has("wait")) return wait_for_all(context, answer);
  return 0;
}

std::vector<Example> notes() {
  return {
      {tr("Scripts and commands"),
       tr("Options end at the command; everything after it belongs to the job. A script (a file "
          "that begins with #! or is named *.sh) is copied at submission: editing it later does "
          "not change the job. Lines such as '# GFLOW --gpus 2' before its first command are "
          "options, which the command line overrides; #SBATCH lines are honoured where they apply "
          "to gflow. A single argument that is a shell command line ('a && b') is run by bash. "
          "Without a command, or with '-', the script is read from standard input.")},
      {tr("Environment of the job"),
       tr("The job gets the current environment, CUDA_VISIBLE_DEVICES with its GPUs, GFLOW_JOB_ID "
          "(in Slurm SLURM_JOB_ID) and more. Its stdout and stderr go to its log; see 'gjob "
          "log'.")},
  };
}

}  // namespace

Command gbatch_command() {
  return {
      .name = "gbatch",
      .summary = tr("submit a job"),
      .usage = {"[options] COMMAND [ARGUMENT...]",
                "[options] SCRIPT.sh [ARGUMENT...]",
                "[options] - < SCRIPT",
                "new NAME"},
      .description = tr("Submits a job and prints 'Submitted batch job ID', one line per job. The "
                        "job starts when the resources it requests are free."),
      .options = submit_options(),
      .words = {.name = "COMMAND", .help = "", .most = kAnyNumber, .complete = Complete::Command},
      .order = Order::FirstWordEndsOptions,
      .examples =
          {{"gbatch --gpus 1 python train.py", tr("one GPU")},
           {"gbatch --gpus '8G,0.5' python serve.py", tr("half a GPU with 8 GiB")},
           {"gbatch --gpus '2(A100)' --gpu-memory 40G python train.py",
            tr("two A100 with 40 GiB free on each")},
           {"gbatch --gpus 2 --time 4:00:00 --name exp1 train.sh", tr("submit a script")},
           {"gbatch --depends-on 42 --time 10 python evaluate.py", tr("start after job 42")},
           {"gbatch --gpus 1 --param lr=0.1,0.01 python train.py --lr {lr}",
            tr("a parameter sweep")},
           {"gbatch --gpus 4 --launch ddp python train.py", tr("a process for each of four GPUs")},
           {"gbatch --server kube --image pytorch/pytorch --gpus 1 train.sh",
            tr("a job of a Kubernetes cluster")},
           {"gbatch --wait python test.py && echo passed", tr("wait and exit with its exit code")}},
      .notes = notes(),
      .subcommands = {{.name = "new",
                       .summary = tr("create a job script from a template"),
                       .usage = {"NAME"},
                       .description = tr("Writes NAME.sh with the usual options as comments. An "
                                         "existing file is not overwritten."),
                       .words = {.name = "NAME",
                                 .help = tr("Name of the script, with or without .sh."),
                                 .least = 1,
                                 .most = 1},
                       .common = Common::Text,
                       .run = write_new_script}},
      .run = run_gbatch,
  };
}

}  // namespace gflow::cli
