// SPDX-License-Identifier: Apache-2.0
#include "slurm/submission.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/text.h"
#include "base/translate.h"
#include "core/catalogue.h"
#include "os/clock.h"
#include "slurm/batch_header.h"

namespace gflow::slurm {
namespace {

constexpr int kNiceOfPriority = 100;  ///< for each step below the usual priority
constexpr std::string_view kOfArrays = "GFLOW_ARRAY_TASK_";
/// Runs what is behind it, as a job that is a command has no script.
constexpr std::string_view kByItself = "#!/bin/sh\nexec \"$@\"\n";

/// What a job may ask for that Slurm cannot do, and what is to be done instead.
struct Limit {
  bool (*asks)(const JobSpec& spec, const Payload& payload);
  std::string_view text;
};
constexpr auto kLimits = std::to_array<Limit>({
    {[](const JobSpec& spec, const Payload&) { return spec.priority > kDefaultPriority; },
     tr_later("only administrators of Slurm raise a priority: leave out --priority, or give one "
              "below 10")},
    {[](const JobSpec& spec, const Payload&) { return spec.max_retries > 0; },
     tr_later("Slurm does not run a job again that failed: leave out --max-retries")},
    {[](const JobSpec& spec, const Payload&) { return spec.preemption != Preemption::None; },
     tr_later("whom others may stop is said by partitions and QOS of Slurm: leave out "
              "--preemptible")},
    {[](const JobSpec& spec, const Payload&) { return spec.max_concurrent > 0; },
     tr_later("how many run at once is limited by a QOS of Slurm: leave out --max-concurrent")},
    {[](const JobSpec& spec, const Payload&) { return !spec.request.selector.empty(); },
     tr_later("nodes of Slurm have features and no labels: leave out --constraint and set "
              "SBATCH_CONSTRAINT")},
    {[](const JobSpec& spec, const Payload&) { return spec.request.see_all; },
     tr_later("a job of Slurm sees the GPUs that it has, not all of its node: ask for some")},
    {[](const JobSpec& spec, const Payload&) { return spec.request.mode == GpuMode::TimeSlice; },
     tr_later("GPUs of Slurm are not time-sliced: ask for a part of one, such as 0.5")},
    {[](const JobSpec&, const Payload& payload) { return payload.config_name.has_value(); },
     tr_later("Slurm carries no configuration: leave out --config and read the file where it is")},
});

/// GPUs of one type, as nodes have them.
struct Kind {
  std::string type;               ///< as Slurm calls it; "" if it calls it nothing
  std::int64_t parts_of_gpu = 0;  ///< shards, or of MPS; the fewest; 0: its nodes have none
  std::string parts;              ///< "shard" or "mps"
};

bool is_model(const std::string& type, const Request& request) {
  return request.models.empty() ||
         std::ranges::any_of(request.models, [&type](const std::string& wanted) {
           return catalogue::answers(wanted, catalogue::device_model("", type, {})) ||
                  to_lower(wanted) == to_lower(type);
         });
}

/// Whether a whole one has the memory that is to be free on it; what nothing is known of has not.
bool has_memory(const std::string& type, const Request& request) {
  const bool is_asked = request.mode != GpuMode::Fraction && request.gpu_memory.bytes > 0;
  if (!is_asked) return true;
  const auto whole = catalogue::memory_of(catalogue::device_model("", type, {}));
  return whole && *whole >= request.gpu_memory;
}

std::int64_t count_of(const Node& node, std::string_view kind) {
  std::int64_t count = 0;
  for (const Gres& one : node.gres) count += one.kind == kind ? one.count : 0;
  return count;
}

void note_parts(Kind& kind, const Node& node) {
  const std::int64_t gpus = count_of(node, "gpu");
  for (const char* parts : {"shard", "mps"}) {
    const std::int64_t of_gpu = gpus > 0 ? count_of(node, parts) / gpus : 0;
    if (of_gpu == 0 || (!kind.parts.empty() && kind.parts != parts)) continue;
    kind.parts_of_gpu = kind.parts.empty() ? of_gpu : std::min(kind.parts_of_gpu, of_gpu);
    kind.parts = parts;
  }
}

std::vector<Kind> kinds_of(const Request& request, const std::vector<Node>& nodes) {
  std::vector<Kind> kinds;
  for (const Node& node : nodes) {
    for (const Gres& gres : node.gres) {
      if (gres.kind != "gpu" || !is_model(gres.type, request)) continue;
      auto at = std::ranges::find(kinds, gres.type, &Kind::type);
      if (at == kinds.end()) at = kinds.insert(kinds.end(), {gres.type});
      note_parts(*at, node);
    }
  }
  return kinds;
}

Error no_such_gpu(const std::vector<Node>& nodes) {
  std::set<std::string> types;
  for (const Node& node : nodes) {
    for (const Gres& gres : node.gres) {
      if (gres.kind == "gpu") types.insert(gres.type.empty() ? "gpu" : printable(gres.type));
    }
  }
  return {Code::Infeasible,
          types.empty()
              ? tr("no node of Slurm has GPUs")
              : tr_format("no node of Slurm has such GPUs; there are: {}",
                          join(std::vector<std::string>(types.begin(), types.end()), ", "))};
}

/// A part of one GPU, of whichever is larger: that of its compute or that of its memory.
Result<std::string> part_of(const Request& request, const std::vector<Kind>& kinds) {
  if (request.gpus > 1) {
    return fail(Code::Usage,
                tr("parts of several GPUs cannot be asked for in Slurm: ask for whole ones, or for "
                   "a part of one"));
  }
  const auto shared =
      std::ranges::find_if(kinds, [](const Kind& kind) { return kind.parts_of_gpu > 0; });
  if (shared == kinds.end()) {
    return fail(Code::Infeasible,
                tr("no such GPU of Slurm is shared (its nodes have neither shard nor mps): ask for "
                   "whole ones"));
  }
  double part = static_cast<double>(request.share.parts) / Share::kWholeParts;
  if (request.gpu_memory.bytes > 0) {
    const auto whole = catalogue::memory_of(catalogue::device_model("", shared->type, {}));
    if (!whole) {
      return fail(Code::Usage,
                  tr("Slurm knows no memory of GPUs, and nothing says how much such a GPU has: "
                     "write the part of it instead, such as 0.5"));
    }
    const double of_memory =
        static_cast<double>(request.gpu_memory.bytes) / static_cast<double>(whole->bytes);
    if (of_memory > 1) return fail(Code::Infeasible, tr("no such GPU of Slurm has so much memory"));
    part = std::max(part, of_memory);
  }
  const auto count =
      static_cast<std::int64_t>(std::ceil(part * static_cast<double>(shared->parts_of_gpu) - 1e-9));
  const std::string type = request.models.empty() || shared->type.empty() ? "" : ":" + shared->type;
  return fmt::format("{}{}:{}", shared->parts, type, std::max<std::int64_t>(count, 1));
}

/// Of GFLOW_ARRAY_TASK_ID and others: "" of a job that is no task.
std::string_view array_value(const Payload& payload, std::string_view name) {
  std::string_view value;  // the last one holds
  for (const std::string& variable : payload.environment) {
    const std::string_view text = variable;
    if (!text.starts_with(kOfArrays) || !text.substr(kOfArrays.size()).starts_with(name)) continue;
    const std::string_view rest = text.substr(kOfArrays.size() + name.size());
    if (rest.starts_with('=')) value = rest.substr(1);
  }
  return value;
}

/// What scripts for arrays of Slurm read. The number of the array is not among them: the tasks are
/// jobs, and have none.
void add_array_variables(std::vector<std::string>& environment, const Payload& payload) {
  if (array_value(payload, "ID").empty()) return;
  std::erase_if(environment,
                [](const std::string& one) { return one.starts_with("SLURM_ARRAY_"); });
  for (const char* name : {"ID", "COUNT", "MIN", "MAX"}) {
    const std::string_view value = array_value(payload, name);
    if (!value.empty()) environment.push_back(fmt::format("SLURM_ARRAY_TASK_{}={}", name, value));
  }
}

Result<std::string> input_of(const Payload& payload) {
  if (!payload.script) return std::string(kByItself);
  const std::string& script = *payload.script;
  const std::vector<HeaderOption> options = header_options(script);
  if (std::ranges::find(options, "test-only", &HeaderOption::name) != options.end()) {
    return fail(Code::Usage,
                tr("#SBATCH --test-only submits nothing: take the line out of the script, or run "
                   "'sbatch --test-only SCRIPT'"));
  }
  std::string input =
      without_what_gbatch_does(script.starts_with("#!") ? script : "#!/bin/bash\n" + script);
  const std::string_view task = array_value(payload, "ID");
  return task.empty() ? input : with_files_of_task(std::move(input), task);
}

/// Slurm takes a job that it does not know for one that has ended well.
Result<std::string> dependency_of(const Dependencies& dependencies, const std::vector<Job>& jobs) {
  std::string text;
  for (const JobId id : dependencies.jobs) {
    const auto job = std::ranges::find(jobs, id.value, &Job::id);
    if (job == jobs.end()) {
      return fail(Code::NotFound,
                  tr_format("Slurm does not know job {} (any more): 'sacct -j {}' tells how it "
                            "ended; if it ended well, leave it out of --depends-on",
                            id.value,
                            id.value));
    }
    const char* between = dependencies.mode == DependencyMode::All ? "," : "?";
    text += text.empty() ? "" : between;
    // Of an array that has not begun, all of it.
    const bool is_task = parse_number(job->tasks).has_value();
    text += "afterok:" +
            (is_task || job->array == 0 ? slurm::name_of(*job) : std::to_string(job->array));
  }
  return text;
}

std::string name_of(const JobSpec& spec, const Payload& payload) {
  return spec.name.empty() ? std::filesystem::path(payload.argv.front()).filename().string()
                           : spec.name;
}

void add_resources(std::vector<std::string>& words, const JobSpec& spec) {
  const Request& request = spec.request;
  if (request.nodes > 1) {
    words.insert(words.end(), {fmt::format("--nodes={}", request.nodes), "--ntasks-per-node=1"});
  }
  if (request.cpus > 0) words.push_back(fmt::format("--cpus-per-task={}", request.cpus));
  if (request.memory.bytes > 0) {
    constexpr std::int64_t kOfMib = 1 << 20;
    words.push_back(fmt::format("--mem={}M", (request.memory.bytes + kOfMib - 1) / kOfMib));
  }
  if (spec.time_limit) {
    const auto minutes = std::chrono::floor<std::chrono::minutes>(*spec.time_limit);
    words.push_back(
        fmt::format("--time={}:{:02}", minutes.count(), (*spec.time_limit - minutes).count()));
  }
}

Result<void> add_order(std::vector<std::string>& words,
                       const JobSpec& spec,
                       const std::vector<Job>& jobs) {
  if (spec.priority < kDefaultPriority) {
    words.push_back(fmt::format("--nice={}", (kDefaultPriority - spec.priority) * kNiceOfPriority));
  }
  if (spec.hold) words.emplace_back("--hold");
  if (spec.begin) {
    const auto left = std::chrono::ceil<std::chrono::seconds>(*spec.begin - os::now().wall);
    words.push_back(fmt::format("--begin=now+{}", std::max<std::int64_t>(left.count(), 0)));
  }
  if (spec.dependencies.jobs.empty()) return {};
  words.push_back("--dependency=" + GF_TRY(dependency_of(spec.dependencies, jobs)));
  words.push_back(
      fmt::format("--kill-on-invalid-dep={}", spec.dependencies.auto_cancel ? "yes" : "no"));
  return {};
}

}  // namespace

Result<std::string> gres_for(const Request& request, const std::vector<Node>& nodes) {
  if (request.gpus == 0) return {};
  std::vector<Kind> kinds = kinds_of(request, nodes);
  if (kinds.empty()) return std::unexpected(no_such_gpu(nodes));
  if (request.mode == GpuMode::Fraction) return part_of(request, kinds);
  const auto lacking = std::ranges::remove_if(
      kinds, [&request](const Kind& kind) { return !has_memory(kind.type, request); });
  const bool is_any = request.models.empty() && lacking.empty();
  kinds.erase(lacking.begin(), lacking.end());
  if (kinds.empty()) {
    return fail(Code::Infeasible,
                tr("no such GPU of Slurm is known to have so much memory: name a model"));
  }
  if (is_any || (kinds.size() == 1 && kinds.front().type.empty())) {
    return fmt::format("gpu:{}", request.gpus);
  }
  if (kinds.size() > 1) {
    return fail(Code::Usage, tr("Slurm takes one model for a job: name one of them"));
  }
  return fmt::format("gpu:{}:{}", kinds.front().type, request.gpus);
}

Result<Call> sbatch_call(const JobSpec& spec,
                         const Payload& payload,
                         const Facts& facts,
                         const std::string& comment) {
  for (const Limit& limit : kLimits) {
    if (limit.asks(spec, payload)) return fail(Code::Usage, tr(limit.text));
  }
  Call call;
  std::vector<std::string>& words = call.argv;
  words = {"sbatch",
           "--parsable",
           "--export=ALL",
           "--job-name=" + name_of(spec, payload),
           "--chdir=" + spec.work_dir,
           "--comment=" + comment,
           spec.requeue ? "--requeue" : "--no-requeue"};
  if (const std::string gres = GF_TRY(gres_for(spec.request, facts.nodes)); !gres.empty()) {
    words.push_back("--gres=" + gres);
  }
  if (!spec.project.empty()) words.push_back("--account=" + spec.project);
  add_resources(words, spec);
  GF_CHECK(add_order(words, spec, facts.jobs));
  words.emplace_back("/dev/stdin");
  words.insert(words.end(), payload.argv.begin() + (payload.script ? 1 : 0), payload.argv.end());
  call.input = GF_TRY(input_of(payload));
  call.environment = payload.environment;
  add_array_variables(call.environment, payload);
  call.environment.push_back("GFLOW_JOB_NAME=" + name_of(spec, payload));
  return call;
}

}  // namespace gflow::slurm
