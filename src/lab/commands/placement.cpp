// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <cstdint>

#include "base/text.h"
#include "base/translate.h"
#include "lab/commands/experiment.h"
#include "lab/placement_report.h"

namespace gflow::cli {
namespace {

constexpr std::uint64_t kMaxSeeds = 1000;

Result<std::uint64_t> whole(const Invocation& invocation,
                            std::string_view option,
                            std::uint64_t otherwise,
                            std::uint64_t most) {
  if (!invocation.has(option)) return otherwise;
  const auto number = parse_number(invocation.get(option));
  if (number && *number <= most) return *number;
  return fail(Code::Usage,
              tr_format("--{}: '{}' is not a whole number up to {}",
                        option,
                        printable(invocation.get(option)),
                        most));
}

Result<std::vector<std::uint64_t>> read_seeds(const Invocation& invocation,
                                              std::uint64_t usual_count) {
  const std::uint64_t first =
      GF_TRY(whole(invocation, "seed", lab::kFirstOpenbSeed, UINT64_MAX - kMaxSeeds));
  const std::uint64_t count =
      GF_TRY(whole(invocation, "seeds", invocation.has("seed") ? 1 : usual_count, kMaxSeeds));
  if (count == 0) return fail(Code::Usage, tr("--seeds: at least 1"));
  std::vector<std::uint64_t> seeds;
  for (std::uint64_t i = 0; i < count; ++i) seeds.push_back(first + i);
  return seeds;
}

Result<lab::PlacementStudy> read_study(const Invocation& invocation, std::uint64_t usual_seeds) {
  lab::PlacementStudy study;
  study.data = data_directory(invocation);
  study.traces = invocation.all("trace");
  if (study.traces.empty()) study.traces = {"default"};
  if (study.traces == std::vector<std::string>{"all"}) {
    study.traces.assign(lab::kOpenbTraces.begin(), lab::kOpenbTraces.end());
  }
  for (const std::string& trace : study.traces) {
    if (trace.find('/') != std::string::npos) {
      return fail(Code::Usage, tr_format("'{}' is not an openb trace", printable(trace)));
    }
  }
  study.policies = invocation.all("policy");
  if (study.policies.empty()) study.policies = {"gflow", "fgd", "best-fit", "random"};
  if (study.policies == std::vector<std::string>{"all"}) {
    study.policies.clear();
    for (const auto& entry : placement::policies()) study.policies.emplace_back(entry.name);
  }
  GF_CHECK(lab::policies_called(study.policies));
  study.seeds = GF_TRY(read_seeds(invocation, usual_seeds));
  return study;
}

Result<double> read_load(const Invocation& invocation) {
  if (!invocation.has("load")) return 1.0;
  const std::string text = invocation.get("load");
  double load = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), load);
  if (error == std::errc{} && end == text.data() + text.size() && load > 0 && load <= 10) {
    return load;
  }
  return fail(Code::Usage,
              tr_format("--load: '{}' is not a number above 0 and up to 10", printable(text)));
}

Result<int> run_openb(const Invocation& invocation, Context& context) {
  const auto study = GF_TRY(read_study(invocation, 5));
  ProgressLine line(context);
  const auto report = lab::inflation_report(study, line.callback());
  line.wipe();
  return give(GF_TRY(report), invocation, context);
}

Result<int> run_churn(const Invocation& invocation, Context& context) {
  const auto study = GF_TRY(read_study(invocation, 3));
  lab::ChurnProtocol protocol;
  protocol.load = GF_TRY(read_load(invocation));
  protocol.arrivals = static_cast<int>(GF_TRY(
      whole(invocation, "arrivals", static_cast<std::uint64_t>(protocol.arrivals), 100'000'000)));
  ProgressLine line(context);
  const auto report = lab::churn_report(study, protocol, line.callback());
  line.wipe();
  return give(GF_TRY(report), invocation, context);
}

std::vector<Option> study_options(const std::string& seeds_help) {
  return {{.name = "policy",
           .value = "NAME",
           .help = tr("Placement policy; repeat to compare, or 'all' (default: gflow, fgd, "
                      "best-fit and random)."),
           .repeatable = true},
          {.name = "trace",
           .value = "NAME",
           .help = tr("Variant of the trace: default, gpushare40, multigpu50, ...; repeat to "
                      "compare, or 'all' for the 17 with published results."),
           .repeatable = true},
          {.name = "seeds", .value = "N", .help = seeds_help},
          {.name = "seed",
           .value = "N",
           .help = tr("First seed (default: 42); without --seeds, the only one.")},
          data_option()};
}

}  // namespace

Command lab_openb_command() {
  Command command{
      .name = "openb",
      .summary = tr("measure how full a cluster gets when tasks arrive and stay"),
      .usage = {"[--policy NAME]... [--trace NAME]... [--data DIR]"},
      .description =
          tr("The workload inflation of Weng et al., \"Beware of Fragmentation\", USENIX ATC 2023: "
             "tasks of Alibaba's cluster trace openb (1,213 nodes, 6,212 GPUs) arrive until 130 % "
             "of the GPU compute has been requested; a task that does not fit is lost. The "
             "authors' published results are shown for comparison."),
      .options = study_options(tr("Number of seeds (default: 5). 42 to 46 are the orders of the "
                                  "published runs; others are drawn in the same way.")),
      .examples = {{"gflow lab openb --data data", tr("four policies on the default trace")},
                   {"gflow lab openb --trace all --policy all --plot openb.svg",
                    tr("all traces and policies")}},
      .run = run_openb,
  };
  for (Option& option : output_options()) command.options.push_back(std::move(option));
  return command;
}

Command lab_churn_command() {
  Command command{
      .name = "churn",
      .summary = tr("measure how full a cluster gets when tasks come and go"),
      .usage = {"[--policy NAME]... [--trace NAME]... [--load L] [--data DIR]"},
      .description =
          tr("Tasks drawn from the openb trace arrive as a Poisson process and stay for "
             "exponentially distributed times; a task that does not fit when it arrives is lost. "
             "Reports the GPU compute in use, averaged over time after a warm-up."),
      .options = study_options(tr("Number of seeds (default: 3).")),
      .examples = {{"gflow lab churn --data data", tr("four policies on the default trace")},
                   {"gflow lab churn --load 1.2 --policy gflow --policy fgd",
                    tr("two policies under a higher load")}},
      .run = run_churn,
  };
  command.options.push_back(
      {.name = "load",
       .value = "L",
       .help =
           tr("Load: GPU compute requested at a time, as a ratio of capacity (default: 1.0).")});
  command.options.push_back({.name = "arrivals",
                             .value = "N",
                             .help = tr("Number of tasks that arrive (default: 80000).")});
  for (Option& option : output_options()) command.options.push_back(std::move(option));
  return command;
}

}  // namespace gflow::cli
