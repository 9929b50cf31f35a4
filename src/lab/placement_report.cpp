// SPDX-License-Identifier: Apache-2.0
#include "lab/placement_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "lab/inflation.h"

namespace gflow::lab {
namespace {

using placement::PolicyEntry;

constexpr std::uint64_t kLastOpenbSeed = 46;

bool is_published(std::string_view trace) {
  return std::ranges::find(kOpenbTraces, trace) != kOpenbTraces.end();
}

Result<ArrivalOrder> order_of(const PlacementStudy& study,
                              const Openb& openb,
                              const std::string& trace,
                              std::uint64_t seed) {
  if (seed >= kFirstOpenbSeed && seed <= kLastOpenbSeed && is_published(trace)) {
    return load_arrival_order(study.data, trace, static_cast<int>(seed));
  }
  return draw_arrival_order(openb, seed);
}

/// What the authors had with the same seed; null if they had none.
const AllocationCurve* published_curve(const std::vector<PublishedRun>& runs,
                                       std::string_view trace,
                                       std::string_view policy,
                                       std::uint64_t seed) {
  for (const PublishedRun& run : runs) {
    if (run.trace == trace && run.policy == policy && std::cmp_equal(run.seed, seed)) {
      return &run.curve;
    }
  }
  return nullptr;
}

/// Mean over seeds of one policy on one trace.
struct Inflated {
  std::vector<Point> curve;
  double at_the_end = 0;
  double lost = 0;
  double published = 0;
  double farthest = 0;  ///< from the published curves, at any load
  int compared = 0;
};

void compare(Inflated& mean, const AllocationCurve& ours, const AllocationCurve& theirs) {
  ++mean.compared;
  mean.published += theirs.back();
  for (std::size_t i = 0; i < ours.size(); ++i) {
    mean.farthest = std::max(mean.farthest, std::fabs(ours[i] - theirs[i]));
  }
}

Result<Inflated> inflate(const PlacementStudy& study,
                         const Openb& openb,
                         const std::string& trace,
                         const PolicyEntry& policy,
                         const std::vector<PublishedRun>& published) {
  Inflated mean;
  const auto count = static_cast<double>(study.seeds.size());
  for (int percent = 0; percent <= kMaxArrivedPercent; ++percent) {
    mean.curve.push_back({static_cast<double>(percent), 0});
  }
  for (const std::uint64_t seed : study.seeds) {
    const InflationRun run =
        run_inflation(openb, GF_TRY(order_of(study, openb, trace, seed)), policy);
    for (std::size_t i = 0; i < run.curve.size(); ++i) mean.curve[i].y += run.curve[i] / count;
    mean.lost += static_cast<double>(run.lost) / count;
    const AllocationCurve* theirs = published_curve(published, trace, policy.name, seed);
    if (theirs != nullptr) compare(mean, run.curve, *theirs);
  }
  mean.at_the_end = mean.curve.back().y;
  if (mean.compared > 0) mean.published /= mean.compared;
  return mean;
}

/// None if the file is not there: what others published is beside the point of who has only the
/// trace.
Result<std::vector<PublishedRun>> published_runs(const std::string& directory) {
  auto runs = load_published(directory);
  if (!runs && runs.error().code == Code::NotFound) return std::vector<PublishedRun>{};
  return runs;
}

std::string seeds_text(const std::vector<std::uint64_t>& seeds) {
  std::string text;
  for (const std::uint64_t seed : seeds)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", seed);
  return text;
}

/// Bars by trace if there are several, and of one trace its curves.
std::vector<Chart> charts_of(const std::vector<std::string>& traces,
                             std::vector<Series> bars,
                             std::vector<Series> curves) {
  if (traces.size() > 1 || curves.empty()) {
    return {{"GPU allocation", "trace", "percent", Chart::Kind::Bar, std::move(bars), traces}};
  }
  return {{fmt::format("GPU allocation, trace {}", traces.front()),
           "GPU compute that has arrived, percent of all there is",
           "percent",
           Chart::Kind::Line,
           std::move(curves),
           {}}};
}

/// Tells how far it is, one step per trace and policy.
class Steps {
 public:
  Steps(const Progress& progress, std::size_t count) : progress_(progress), count_(count) {}
  void begin(const std::string& trace, std::string_view policy) {
    const double done = static_cast<double>(done_++) / static_cast<double>(count_);
    if (progress_) progress_(done, fmt::format("{}, {}", trace, policy));
  }

 private:
  const Progress& progress_;
  std::size_t count_;
  std::size_t done_ = 0;
};

}  // namespace

Result<std::vector<const PolicyEntry*>> policies_called(const std::vector<std::string>& names) {
  std::vector<std::string> there_are;
  for (const PolicyEntry& entry : placement::policies()) there_are.emplace_back(entry.name);
  std::vector<const PolicyEntry*> found;
  for (const std::string& name : names) {
    found.push_back(placement::find_policy(name));
    if (found.back() != nullptr) continue;
    const auto near = nearest(name, there_are);
    return fail(Code::Usage,
                fmt::format("there is no policy '{}'{}; there are: {}",
                            printable(name),
                            near ? fmt::format(" (is it '{}'?)", *near) : "",
                            join(there_are, ", ")));
  }
  return found;
}

Result<Report> inflation_report(const PlacementStudy& study, const Progress& progress) {
  const auto policies = GF_TRY(policies_called(study.policies));
  const auto published = GF_TRY(published_runs(study.data));
  Report report{"LabOpenb",
                "Tasks of a GPU cluster arrive and stay (Weng et al., USENIX ATC 2023)",
                {},
                {},
                {},
                {}};
  report.facts = {{"traces", join(study.traces, ", ")}, {"seeds", seeds_text(study.seeds)}};
  Table table{"results",
              "GPU allocation when 130 % of the capacity has been asked for, mean over the seeds",
              {{"trace", "TRACE"},
               {"policy", "POLICY"},
               {"allocation_percent", "ALLOCATED", Shown::Percent, 2},
               {"published_percent", "PUBLISHED", Shown::Percent, 2},
               {"farthest_from_published", "FARTHEST", Shown::Plain, 2},
               {"lost", "LOST TASKS", Shown::Plain, 1}},
              {}};
  Steps steps(progress, study.traces.size() * policies.size());
  std::vector<Series> bars;
  for (const PolicyEntry* policy : policies) bars.push_back({std::string(policy->name), {}});
  std::vector<Series> curves;
  for (const std::string& trace : study.traces) {
    const Openb openb = GF_TRY(load_openb(study.data, trace));
    for (std::size_t i = 0; i < policies.size(); ++i) {
      steps.begin(trace, policies[i]->name);
      Inflated mean = GF_TRY(inflate(study, openb, trace, *policies[i], published));
      bars[i].points.push_back({static_cast<double>(bars[i].points.size()), mean.at_the_end});
      auto& row = table.rows.emplace_back(std::vector<TableValue>{
          trace, std::string(policies[i]->name), mean.at_the_end, {}, {}, mean.lost});
      if (mean.compared > 0) {
        row[3] = mean.published;
        row[4] = mean.farthest;
      }
      curves.push_back({std::string(policies[i]->name), std::move(mean.curve)});
    }
  }
  report.tables = {std::move(table)};
  report.notes = {
      "FARTHEST: the largest difference from the authors' curves at any load, any seed."};
  report.charts = charts_of(study.traces, std::move(bars), std::move(curves));
  return report;
}

namespace {

Result<ChurnRun> mean_churn(const Openb& openb,
                            const std::vector<std::uint64_t>& seeds,
                            const PolicyEntry& policy,
                            const ChurnProtocol& protocol) {
  const auto count = static_cast<double>(seeds.size());
  ChurnRun mean;
  for (const std::uint64_t seed : seeds) {
    const ChurnRun run = run_churn(openb, seed, policy, protocol);
    if (run.tasks_accepted <= 0) {
      return fail(Code::Usage,
                  fmt::format("{} arrivals are over before the cluster is full: take more",
                              protocol.arrivals));
    }
    mean.allocation += run.allocation / count;
    mean.demand_accepted += run.demand_accepted / count;
    mean.tasks_accepted += run.tasks_accepted / count;
  }
  return mean;
}

}  // namespace

Result<Report> churn_report(const PlacementStudy& study,
                            const ChurnProtocol& protocol,
                            const Progress& progress) {
  const auto policies = GF_TRY(policies_called(study.policies));
  Report report{"LabChurn",
                "Tasks of a GPU cluster come and go; one that does not fit is lost",
                {},
                {},
                {},
                {}};
  report.facts = {{"traces", join(study.traces, ", ")},
                  {"seeds", seeds_text(study.seeds)},
                  {"arrivals", fmt::format("{}", protocol.arrivals)},
                  {"load", fmt::format("{:.2f} of the GPU compute there is", protocol.load)}};
  Table table{"results",
              "Mean over time and seeds",
              {{"trace", "TRACE"},
               {"policy", "POLICY"},
               {"allocation_percent", "ALLOCATED", Shown::Percent, 2},
               {"demand_accepted_percent", "DEMAND MET", Shown::Percent, 2},
               {"tasks_accepted_percent", "TASKS PLACED", Shown::Percent, 2}},
              {}};
  Steps steps(progress, study.traces.size() * policies.size());
  std::vector<Series> bars;
  for (const PolicyEntry* policy : policies) bars.push_back({std::string(policy->name), {}});
  for (const std::string& trace : study.traces) {
    const Openb openb = GF_TRY(load_openb(study.data, trace));
    for (std::size_t i = 0; i < policies.size(); ++i) {
      steps.begin(trace, policies[i]->name);
      const ChurnRun mean = GF_TRY(mean_churn(openb, study.seeds, *policies[i], protocol));
      bars[i].points.push_back({static_cast<double>(bars[i].points.size()), mean.allocation});
      table.rows.push_back({trace,
                            std::string(policies[i]->name),
                            mean.allocation,
                            mean.demand_accepted,
                            mean.tasks_accepted});
    }
  }
  report.tables = {std::move(table)};
  report.charts = charts_of(study.traces, std::move(bars), {});
  return report;
}

}  // namespace gflow::lab
