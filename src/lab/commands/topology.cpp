// SPDX-License-Identifier: Apache-2.0
#include "lab/topology.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/translate.h"
#include "lab/commands/experiment.h"

namespace gflow::cli {
namespace {

Result<int> count_of(const Invocation& invocation, std::string_view option, int otherwise) {
  if (!invocation.has(option)) return otherwise;
  const auto number = parse_number(invocation.get(option));
  if (number && *number >= 1 && *number <= 10'000'000) return static_cast<int>(*number);
  return fail(
      Code::Usage,
      tr_format(
          "--{}: '{}' is not a number of at least 1", option, printable(invocation.get(option))));
}

Result<std::vector<lab::WiredMachine>> read_machines(const Invocation& invocation) {
  auto machines = GF_TRY(lab::load_machines(data_directory(invocation)));
  std::vector<std::string> wanted;
  for (const std::string& name : invocation.all("machine")) wanted.push_back(to_lower(name));
  if (wanted.empty()) return machines;
  std::vector<std::string> names;
  for (const lab::WiredMachine& machine : machines) names.push_back(machine.name);
  for (const std::string& pattern : wanted) {
    const auto matches = [&](const std::string& name) {
      return glob_match(pattern, to_lower(name));
    };
    if (std::ranges::any_of(names, matches)) continue;
    const auto near = nearest(pattern, names);
    return fail(Code::NotFound,
                tr_format("there is no machine '{}'{}; the machines are: {}",
                          printable(pattern),
                          near ? tr_format(" (is it '{}'?)", *near) : "",
                          join(names, ", ")));
  }
  std::erase_if(machines, [&](const lab::WiredMachine& machine) {
    return std::ranges::none_of(wanted, [&](const std::string& pattern) {
      return glob_match(pattern, to_lower(machine.name));
    });
  });
  return machines;
}

/// The first mix of each machine on which it matters who chooses, a group of bars each.
lab::Chart chart_of(const std::vector<lab::SharingRow>& rows) {
  lab::Chart chart{"Ring bandwidth of the GPUs jobs get, mix A",
                   "machine",
                   "share of the best possible",
                   lab::Chart::Kind::Bar,
                   {},
                   {}};
  for (const lab::SetPolicy policy : lab::kSetPolicies) {
    chart.series.push_back({std::string(lab::set_policy_name(policy)), {}});
  }
  for (const lab::SharingRow& row : rows) {
    const auto best = [](const std::optional<double>& share) { return share.value_or(1) == 1; };
    if (row.mix != lab::SizeMix::Even || std::ranges::all_of(row.shares, best)) continue;
    for (std::size_t i = 0; i < row.shares.size(); ++i) {
      chart.series[i].points.push_back(
          {static_cast<double>(chart.categories.size()), row.shares.at(i).value_or(0)});
    }
    chart.categories.push_back(row.machine);
  }
  return chart;
}

Result<int> run_lab_topology(const Invocation& invocation, Context& context) {
  const auto machines = GF_TRY(read_machines(invocation));
  lab::SharingOptions options;
  options.jobs = GF_TRY(count_of(invocation, "jobs", options.jobs));
  options.seeds = GF_TRY(count_of(invocation, "seeds", options.seeds));
  ProgressLine line(context);
  const auto rows = lab::share_machines(machines, options, line.callback());
  line.wipe();
  lab::Report report = lab::topology_report(rows, options);
  if (report.charts.empty()) report.charts = {chart_of(rows)};
  return give(report, invocation, context);
}

}  // namespace

Command lab_topology_command() {
  Command command{
      .name = "topology",
      .summary = tr("measure how well the GPUs of a job are connected"),
      .usage = {"[--machine NAME]... [--jobs N] [--seeds N] [--data DIR]"},
      .description =
          tr("Jobs share one real machine, first come, first served, with exponentially "
             "distributed run times. Reports, for each job with two or more GPUs, the bandwidth of "
             "the best ring through its GPUs, as a share of the best of that size on the idle "
             "machine. Job sizes are those of MAPA (Ranganath et al., SC 2021) and of a lab "
             "server; go-gpuallocator is the policy of NVIDIA's Kubernetes device plugin."),
      .options = {{.name = "machine",
                   .value = "NAME",
                   .help = tr("Only these machines; * and ? are wildcards."),
                   .repeatable = true},
                  {.name = "jobs",
                   .value = "N",
                   .help = tr_format("Jobs per run (default: {}).", lab::SharingOptions{}.jobs)},
                  {.name = "seeds",
                   .value = "N",
                   .help = tr_format("Runs of each (default: {}).", lab::SharingOptions{}.seeds)},
                  data_option()},
      .examples = {{"gflow lab topology --data data", tr("all machines with 2 to 16 GPUs")}},
      .run = run_lab_topology,
  };
  for (Option& option : output_options()) command.options.push_back(std::move(option));
  return command;
}

}  // namespace gflow::cli
