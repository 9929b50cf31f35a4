// SPDX-License-Identifier: Apache-2.0
#include "slurm/submission.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/text.h"
#include "base/translate.h"
#include "os/clock.h"
#include "slurm/batch_header.h"
#include "slurm/gres_request.h"

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
    {[](const JobSpec& spec, const Payload&) {
       return spec.request.mode == GpuMode::Fraction && spec.request.share_limit.parts > 0 &&
              spec.request.share_limit != spec.request.share;
     },
     tr_later("a part of a GPU is one number in Slurm: write 0.3 in the place of 0.3..0.5")},
    {[](const JobSpec& spec, const Payload&) { return spec.grace != JobSpec{}.grace; },
     tr_later("how long a job has to end is the same for all jobs of a Slurm ('scontrol show "
              "config', KillWait): leave out --grace")},
    {[](const JobSpec&, const Payload& payload) { return payload.config_name.has_value(); },
     tr_later("Slurm carries no configuration: leave out --config and read the file where it is")},
});

using Header = std::vector<HeaderOption>;

const HeaderOption* said_in(const Header& header, std::string_view name) {
  const auto last = std::ranges::find(header.rbegin(), header.rend(), name, &HeaderOption::name);
  return last == header.rend() ? nullptr : &*last;
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

Result<std::string> input_of(const Payload& payload, const Header& header) {
  if (!payload.script) return std::string(kByItself);
  const std::string& script = *payload.script;
  if (said_in(header, "test-only") != nullptr) {
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

void add_resources(std::vector<std::string>& words, const JobSpec& spec, const Header& header) {
  const Request& request = spec.request;
  if (request.nodes > 1) {
    words.push_back(fmt::format("--nodes={}", request.nodes));
    const bool says_tasks =
        said_in(header, "ntasks") != nullptr || said_in(header, "ntasks-per-node") != nullptr;
    if (!says_tasks) words.emplace_back("--ntasks-per-node=1");
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

/// Whether it is less urgent because its script says so, in Slurm's numbers, which hold then.
bool is_nice_by_script(const JobSpec& spec, const Header& header) {
  const HeaderOption* nice = said_in(header, "nice");
  if (nice == nullptr) return false;
  const auto value = parse_number(nice->value);
  if (!value) return true;
  return std::cmp_equal(spec.priority,
                        kDefaultPriority - std::min<std::uint64_t>(*value, kDefaultPriority));
}

Result<void> add_order(std::vector<std::string>& words,
                       const JobSpec& spec,
                       const Header& header,
                       const std::vector<Job>& jobs) {
  if (spec.priority < kDefaultPriority && !is_nice_by_script(spec, header)) {
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

Result<Call> sbatch_call(const JobSpec& spec,
                         const Payload& payload,
                         const Facts& facts,
                         const std::string& comment) {
  for (const Limit& limit : kLimits) {
    if (limit.asks(spec, payload)) return fail(Code::Usage, tr(limit.text));
  }
  const Header header = payload.script ? header_options(*payload.script) : Header{};
  const HeaderOption* own_comment = said_in(header, "comment");
  Call call;
  std::vector<std::string>& words = call.argv;
  words = {"sbatch",
           "--parsable",
           "--export=ALL",
           "--job-name=" + name_of(spec, payload),
           "--chdir=" + spec.work_dir,
           "--comment=" + comment + (own_comment == nullptr ? "" : " " + own_comment->value),
           spec.requeue ? "--requeue" : "--no-requeue"};
  if (const std::string gres = GF_TRY(gres_for(spec.request, facts.nodes)); !gres.empty()) {
    words.push_back("--gres=" + gres);
  }
  if (!spec.project.empty()) words.push_back("--account=" + spec.project);
  add_resources(words, spec, header);
  GF_CHECK(add_order(words, spec, header, facts.jobs));
  words.emplace_back("/dev/stdin");
  words.insert(words.end(), payload.argv.begin() + (payload.script ? 1 : 0), payload.argv.end());
  call.input = GF_TRY(input_of(payload, header));
  call.environment = payload.environment;
  add_array_variables(call.environment, payload);
  call.environment.push_back("GFLOW_JOB_NAME=" + name_of(spec, payload));
  return call;
}

}  // namespace gflow::slurm
