// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>

#include "lab/replay.h"

namespace gflow::lab {
namespace {

using std::chrono::milliseconds;

constexpr double kLeastWork = 10;  // seconds; Feitelson et al., JSSPP 1997
constexpr std::size_t kBins = 240;
constexpr std::size_t kMaxUsers = 20;
constexpr std::size_t kMaxTroubles = 3;
constexpr std::size_t kManyRuns = 5;  // enough for quartiles that say something

double seconds_of(milliseconds span) { return static_cast<double>(span.count()) / 1000; }

/// Jobs that ran at the beginning waited before anybody looked.
bool had_to_wait(const Life& life) { return !life.first_start || life.first_start->count() >= 0; }

double wait_of(const Life& life) { return seconds_of(*life.ended - life.submitted - life.done); }

double mean_of(const std::vector<double>& values) {
  if (values.empty()) return std::nan("");
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Of sorted values; the smallest that at least this part of them does not pass.
double quantile(const std::vector<double>& values, double part) {
  if (values.empty()) return std::nan("");
  const auto rank = std::ceil(part * static_cast<double>(values.size()));
  return values[static_cast<std::size_t>(std::max(rank - 1, 0.0))];
}

std::vector<double> sorted_waits(const Played& played) {
  std::vector<double> waits;
  for (const Life& life : played.lives) {
    if (life.ended && had_to_wait(life)) waits.push_back(wait_of(life));
  }
  std::ranges::sort(waits);
  return waits;
}

/// Of sorted values, that of the greatest hundredth of them, at least one.
double mean_of_worst(const std::vector<double>& values) {
  const auto many = static_cast<std::ptrdiff_t>(std::max<std::size_t>(values.size() / 100, 1));
  if (values.empty()) return std::nan("");
  return mean_of({values.end() - many, values.end()});
}

/// Of each size, the first start among jobs submitted later, where no smaller job was as early.
class LaterJobs {
 public:
  [[nodiscard]] bool overtook(const Life& life) const {
    const auto bigger = starts_.upper_bound(life.parts);
    return bigger != starts_.begin() && std::prev(bigger)->second < *life.first_start;
  }
  void add(const Life& life) {
    const auto bigger = starts_.upper_bound(life.parts);
    if (bigger != starts_.begin() && std::prev(bigger)->second <= *life.first_start) return;
    const auto at = starts_.insert_or_assign(life.parts, *life.first_start).first;
    while (std::next(at) != starts_.end() && std::next(at)->second >= at->second) {
      starts_.erase(std::next(at));
    }
  }

 private:
  std::map<std::int64_t, milliseconds> starts_;
};

/// Percent of the jobs that started after one that was submitted later and is no bigger.
double percent_overtaken(const Played& played) {
  std::vector<const Life*> later_first;
  for (const Life& life : played.lives) {
    if (life.first_start && had_to_wait(life)) later_first.push_back(&life);
  }
  if (later_first.empty()) return std::nan("");
  std::ranges::stable_sort(
      later_first, [](const Life* a, const Life* b) { return a->submitted > b->submitted; });
  LaterJobs later;
  std::int64_t overtaken = 0;
  for (auto rest = std::span(later_first); !rest.empty();) {
    const auto together = [&](const Life* life) {
      return life->submitted == rest.front()->submitted;
    };
    const auto end = std::ranges::find_if_not(rest, together);
    const auto alike = rest.first(static_cast<std::size_t>(end - rest.begin()));
    overtaken +=
        std::ranges::count_if(alike, [&](const Life* life) { return later.overtook(*life); });
    for (const Life* life : alike) later.add(*life);
    rest = rest.subspan(alike.size());
  }
  return 100 * static_cast<double>(overtaken) / static_cast<double>(later_first.size());
}

/// GPUs in use, averaged over equal parts of the time up to `until`.
std::vector<double> used_by_bin(const Played& played, milliseconds until) {
  std::vector<double> bins(kBins, 0);
  const double width = seconds_of(until) / static_cast<double>(kBins);
  for (std::size_t i = 0; i < played.moments.size(); ++i) {
    const Moment& moment = played.moments[i];
    const milliseconds next = i + 1 < played.moments.size() ? played.moments[i + 1].at : until;
    double from = seconds_of(moment.at);
    const double to = seconds_of(std::min(next, until));
    const double gpus = static_cast<double>(moment.parts_used) / Share::kWholeParts;
    while (from < to && width > 0) {
      const auto bin = std::min(static_cast<std::size_t>(from / width), kBins - 1);
      const double edge = bin + 1 == kBins ? to : static_cast<double>(bin + 1) * width;
      const double end = std::min(to, std::max(edge, std::nextafter(from, to)));
      bins[bin] += gpus * (end - from) / width;
      from = end;
    }
  }
  return bins;
}

Chart usage_chart(const std::vector<Played>& runs) {
  Chart chart{"GPUs in use", "hours since the beginning", "GPUs", Chart::Kind::Step, {}, {}};
  for (const Played& run : runs) {
    Series series{run.label, {}};
    const std::vector<double> bins = used_by_bin(run, run.ended);
    const double width = seconds_of(run.ended) / 3600 / static_cast<double>(kBins);
    for (std::size_t i = 0; i < bins.size(); ++i) {
      series.points.push_back({static_cast<double>(i) * width, bins[i]});
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

Chart wait_chart(const std::vector<Played>& runs) {
  Chart chart{
      "How long jobs wait", "percent of the jobs", "hours, at most", Chart::Kind::Line, {}, {}};
  for (const Played& run : runs) {
    Series series{run.label, {}};
    const std::vector<double> waits = sorted_waits(run);
    for (int percent = 0; percent <= 100 && !waits.empty(); ++percent) {
      series.points.push_back(
          {static_cast<double>(percent), quantile(waits, percent / 100.0) / 3600});
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

Table runs_table(const std::vector<Played>& runs) {
  Table table{"runs",
              "",
              {{"run", "RUN"},
               {"gpus", "GPUS"},
               {"jobs", "JOBS"},
               {"ended", "ENDED"},
               {"never_started", "NEVER"},
               {"mean_wait_seconds", "MEAN WAIT", Shown::Duration, 1},
               {"median_wait_seconds", "MEDIAN", Shown::Duration, 1},
               {"p90_wait_seconds", "P90", Shown::Duration, 1},
               {"p99_wait_seconds", "P99", Shown::Duration, 1},
               {"longest_wait_seconds", "LONGEST", Shown::Duration, 1},
               {"mean_turnaround_seconds", "TURNAROUND", Shown::Duration, 1},
               {"mean_bounded_slowdown", "SLOWDOWN", Shown::Plain, 1},
               {"utilization_percent", "GPUS BUSY", Shown::Percent, 1},
               {"preemptions", "PREEMPTED"},
               {"makespan_seconds", "ALL DONE", Shown::Duration, 0}},
              {}};
  const bool estimated = runs.front().ended_if_longer.has_value();
  if (estimated) {
    table.columns.push_back({"makespan_if_shorter_seconds", "IF SHORTER", Shown::Duration, 0});
    table.columns.push_back({"makespan_if_longer_seconds", "IF LONGER", Shown::Duration, 0});
  }
  for (const Played& run : runs) {
    const Figures f = figures_of(run);
    table.rows.push_back({run.label,
                          std::int64_t{run.gpus},
                          f.jobs,
                          f.ended,
                          f.never,
                          f.mean_wait,
                          f.median_wait,
                          f.p90_wait,
                          f.p99_wait,
                          f.longest_wait,
                          f.mean_turnaround,
                          f.mean_slowdown,
                          f.utilization,
                          f.preemptions,
                          seconds_of(run.ended)});
    if (!estimated) continue;
    for (const auto& ended : {run.ended_if_shorter, run.ended_if_longer}) {
      table.rows.back().emplace_back(seconds_of(ended.value_or(run.ended)));
    }
  }
  return table;
}

/// Of the jobs whose run times have the same source, what stands in the middle of them.
struct EstimateFigures {
  std::vector<double> runs;
  std::vector<double> shorter;
  std::vector<double> median;
  std::vector<double> longer;
};

std::map<Likeness, EstimateFigures> by_likeness(const Subject& subject) {
  std::map<Likeness, EstimateFigures> all;
  for (const Subject::Existing& existing : subject.existing) {
    if (!existing.still_to_run) continue;
    const RunEstimate& run = *existing.still_to_run;
    EstimateFigures& figures = all[run.likeness];
    figures.runs.push_back(static_cast<double>(run.runs));
    figures.shorter.push_back(seconds_of(run.shorter));
    figures.median.push_back(seconds_of(run.median));
    figures.longer.push_back(seconds_of(run.longer));
  }
  for (auto& [likeness, figures] : all) {
    for (auto* values : {&figures.runs, &figures.shorter, &figures.median, &figures.longer}) {
      std::ranges::sort(*values);
    }
  }
  return all;
}

Table estimates_table(const Subject& subject) {
  Table table{"run_times",
              "How long jobs still run is estimated from runs like theirs",
              {{"from", "RUNS OF"},
               {"jobs", "JOBS"},
               {"fewest_runs", "FEWEST RUNS"},
               {"shorter_seconds", "SHORTER", Shown::Duration, 0},
               {"median_seconds", "MEDIAN", Shown::Duration, 0},
               {"longer_seconds", "LONGER", Shown::Duration, 0}},
              {}};
  for (const auto& [likeness, figures] : by_likeness(subject)) {
    table.rows.push_back({std::string(likeness_text(likeness)),
                          static_cast<std::int64_t>(figures.runs.size()),
                          static_cast<std::int64_t>(figures.runs.front()),
                          quantile(figures.shorter, 0.5),
                          quantile(figures.median, 0.5),
                          quantile(figures.longer, 0.5)});
  }
  return table;
}

/// How much the times can be believed; nothing to say of those that have many runs like them.
std::vector<std::string> doubts(const Subject& subject) {
  std::int64_t jobs = 0;
  std::int64_t guessed = 0;
  for (const Subject::Existing& existing : subject.existing) {
    if (!existing.still_to_run) continue;
    const RunEstimate& run = *existing.still_to_run;
    ++jobs;
    if (run.likeness >= Likeness::SameUser || run.runs < kManyRuns) ++guessed;
  }
  if (guessed == 0) return {};
  return {
      fmt::format("{} of {} jobs have fewer than {} ended runs of their name or size to go by: "
                  "their times, and "
                  "when all is done, are guesses",
                  guessed,
                  jobs,
                  kManyRuns)};
}

struct UserFigures {
  std::int64_t jobs = 0;
  double gpu_hours = 0;
  std::vector<double> waits;
};

std::map<std::string, UserFigures> by_user(const Played& played) {
  std::map<std::string, UserFigures> users;
  for (const Life& life : played.lives) {
    UserFigures& user = users[life.user];
    ++user.jobs;
    user.gpu_hours +=
        static_cast<double>(life.parts) / Share::kWholeParts * seconds_of(life.done) / 3600;
    if (life.ended && had_to_wait(life)) user.waits.push_back(wait_of(life));
  }
  for (auto& [name, user] : users) std::ranges::sort(user.waits);
  return users;
}

Table users_table(const std::vector<Played>& runs) {
  Table table{"users",
              "Users with most GPU time",
              {{"run", "RUN"},
               {"user", "USER"},
               {"jobs", "JOBS"},
               {"gpu_hours", "GPU HOURS", Shown::Plain, 1},
               {"mean_wait_seconds", "MEAN WAIT", Shown::Duration, 1},
               {"p90_wait_seconds", "P90", Shown::Duration, 1},
               {"longest_wait_seconds", "LONGEST", Shown::Duration, 1}},
              {}};
  for (const Played& run : runs) {
    const auto users = by_user(run);
    std::vector<const std::pair<const std::string, UserFigures>*> order;
    for (const auto& user : users) order.push_back(&user);
    std::ranges::stable_sort(order, [](const auto* a, const auto* b) {
      return a->second.gpu_hours > b->second.gpu_hours;
    });
    if (order.size() > kMaxUsers) order.resize(kMaxUsers);
    for (const auto* user : order) {
      const UserFigures& f = user->second;
      table.rows.push_back({run.label,
                            user->first,
                            f.jobs,
                            f.gpu_hours,
                            mean_of(f.waits),
                            quantile(f.waits, 0.9),
                            f.waits.empty() ? std::nan("") : f.waits.back()});
    }
  }
  return table;
}

/// "mean wait 3h12m -> 41m (--add-node sim:8xH100)"
std::string comparison(const Played& before, const Played& after) {
  const Figures a = figures_of(before);
  const Figures b = figures_of(after);
  const auto time = [](double seconds) {
    return shown_number({"", "", Shown::Duration, 0}, seconds);
  };
  const auto percent = [](double number) {
    return shown_number({"", "", Shown::Percent, 1}, number);
  };
  return fmt::format("{}: mean wait {} -> {}, longest {} -> {}, GPUs busy {} -> {}",
                     after.label,
                     time(a.mean_wait),
                     time(b.mean_wait),
                     time(a.longest_wait),
                     time(b.longest_wait),
                     percent(a.utilization),
                     percent(b.utilization));
}

/// Why jobs never started, the reasons there are most of.
std::vector<std::string> troubles(const Played& played) {
  std::map<std::string, int> count;
  for (const Life& life : played.lives) {
    if (!life.ended && !life.trouble.empty()) ++count[life.trouble];
  }
  std::vector<std::pair<int, std::string>> order;
  for (const auto& [why, jobs] : count) order.emplace_back(-jobs, why);
  std::ranges::sort(order);
  if (order.size() > kMaxTroubles) order.resize(kMaxTroubles);
  std::vector<std::string> lines;
  for (const auto& [jobs, why] : order) {
    lines.push_back(fmt::format(
        "{}: {} {} never started: {}", played.label, -jobs, jobs == -1 ? "job" : "jobs", why));
  }
  return lines;
}

}  // namespace

Figures figures_of(const Played& played) {
  Figures figures;
  double turnaround = 0;
  double slowdown = 0;
  double used = 0;
  for (const Life& life : played.lives) {
    figures.preemptions += life.preemptions;
    figures.gpu_hours +=
        static_cast<double>(life.parts) / Share::kWholeParts * seconds_of(life.done) / 3600;
    if (!had_to_wait(life)) continue;
    ++figures.jobs;
    if (!life.ended) {
      ++figures.never;
      continue;
    }
    ++figures.ended;
    const double took = seconds_of(*life.ended - life.submitted);
    turnaround += took;
    slowdown += std::max(took / std::max(seconds_of(life.done), kLeastWork), 1.0);
  }
  const auto ended = static_cast<double>(figures.ended);
  const std::vector<double> waits = sorted_waits(played);
  figures.mean_wait = mean_of(waits);
  figures.median_wait = quantile(waits, 0.5);
  figures.p90_wait = quantile(waits, 0.9);
  figures.p99_wait = quantile(waits, 0.99);
  figures.longest_wait = waits.empty() ? std::nan("") : waits.back();
  figures.worst_wait = mean_of_worst(waits);
  figures.overtaken = percent_overtaken(played);
  figures.mean_turnaround = turnaround / ended;
  figures.mean_slowdown = slowdown / ended;
  for (const double gpus : used_by_bin(played, played.ended)) used += gpus / kBins;
  figures.utilization = played.gpus == 0 ? std::nan("") : 100 * used / played.gpus;
  return figures;
}

Report replay_report(const Subject& subject, const std::vector<Played>& runs) {
  Report report;
  report.kind = "LabReplay";
  report.title = fmt::format("Replay of {}", subject.name);
  report.facts = {
      {"jobs", fmt::format("{}", runs.front().lives.size())},
      {"nodes", fmt::format("{}", subject.fleet.size())},
      {"gpus", fmt::format("{}", gpus_of(subject.fleet))},
  };
  report.tables = {runs_table(runs), users_table(runs)};
  if (runs.front().ended_if_longer) {
    report.tables.push_back(estimates_table(subject));
    report.notes = doubts(subject);
  }
  std::ranges::copy(subject.notes, std::back_inserter(report.notes));
  for (std::size_t i = 1; i < runs.size(); ++i) {
    report.notes.push_back(comparison(runs.front(), runs[i]));
  }
  for (const Played& run : runs) std::ranges::copy(troubles(run), std::back_inserter(report.notes));
  report.charts = {usage_chart(runs), wait_chart(runs)};
  return report;
}

}  // namespace gflow::lab
