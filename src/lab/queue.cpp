// SPDX-License-Identifier: Apache-2.0
#include "lab/queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/time.h"

namespace gflow::lab {
namespace {

constexpr const char* kOurs = "gflow";
constexpr int kGpusOfNode = 8;
constexpr int kFirstDay = 28;
constexpr int kLastDay = 58;
constexpr std::string_view kCluster = "cluster";
constexpr std::string_view kLabServer = "lab-server";
constexpr std::string_view kLabGroup = "11cb48";  // the one of all groups that fills two machines
constexpr std::array kGuardDays = {1, 2, 3, 4, 5, 6, 7, 9, 12, 16, 22, 30};

std::chrono::seconds class_of(std::chrono::milliseconds run_time) {
  constexpr std::array kHours = {1, 4, 12, 24, 3 * 24, 7 * 24, 14 * 24, 30 * 24, 60 * 24};
  for (const int hours : kHours) {
    if (std::chrono::hours(hours) >= run_time) return std::chrono::hours(hours);
  }
  return std::chrono::ceil<std::chrono::seconds>(run_time);
}

/// One line of the table: an order and what it may use.
struct Contestant {
  std::optional<QueuePeer> peer;  ///< none: gflow
  QueueMode mode = QueueMode::Nothing;
  std::chrono::seconds guard{0};
};

std::vector<Contestant> contestants(const QueueRules& rules) {
  std::vector<Contestant> all;
  for (const QueueMode mode : rules.modes) {
    if (mode == QueueMode::Nothing) all.push_back({QueuePeer::Fifo, mode});
    if (mode == QueueMode::Nothing) all.push_back({QueuePeer::FirstFit, mode});
    if (mode == QueueMode::Limits) all.push_back({QueuePeer::Easy, mode});
    if (mode == QueueMode::Preempting) all.push_back({QueuePeer::Tiresias, mode});
    if (mode != QueueMode::Preempting && rules.frontier) {
      for (const int days : kGuardDays) {
        all.push_back({QueuePeer::Guard, mode, std::chrono::days(days)});
      }
    } else if (mode != QueueMode::Preempting) {
      all.push_back({QueuePeer::Guard, mode, rules.peers.guard});
    }
    all.push_back({{}, mode});
  }
  return all;
}

std::string label_of(const Contestant& one) {
  return one.peer ? std::string(queue_peer_name(*one.peer)) : std::string(kOurs);
}

Played play_one(const Contestant& one,
                Trace trace,
                const EqualNodes& machines,
                PeerRules rules,
                const Progress& progress) {
  for (TraceJob& job : trace.jobs) {
    const bool preempts = one.mode == QueueMode::Preempting;
    job.spec.preemption = preempts ? Preemption::Requeue : Preemption::None;
    job.spec.time_limit.reset();
    if (one.mode == QueueMode::Limits) job.spec.time_limit = class_of(job.run_time);
  }
  if (one.peer) {
    rules.guard = one.guard;
    Played played{label_of(one), play_peer(*one.peer, trace.jobs, machines, rules), {}, {}, 0};
    played.gpus = machines.nodes * machines.gpus;
    return played;
  }
  const std::string nodes = fmt::format("{}x{}", machines.nodes, machines.gpus);
  auto fleet = read_fleet(nodes);
  return play(
      subject_of(std::move(trace), std::move(*fleet), nodes), rules.runner, kOurs, progress);
}

std::string_view knowledge_name(QueueMode mode) {
  return mode == QueueMode::Limits ? "time limits" : "nothing";
}

/// "simple guard, 7d"
std::string name_of(const QueueRow& row) {
  if (row.guard == std::chrono::seconds::zero()) return row.order;
  return fmt::format("{}, {}", row.order, duration_text(row.guard));
}

const QueueRow* first_fit_of(const std::vector<QueueRow>& rows, const std::string& of) {
  const auto at = std::ranges::find_if(rows, [&of](const QueueRow& row) {
    return row.of == of && row.order == queue_peer_name(QueuePeer::FirstFit);
  });
  return at == rows.end() ? nullptr : &*at;
}

std::vector<std::string> cases_of(const std::vector<QueueRow>& rows) {
  std::vector<std::string> cases;
  for (const QueueRow& row : rows) {
    if (std::ranges::find(cases, row.of) == cases.end()) cases.push_back(row.of);
  }
  return cases;
}

Table table_of(const std::vector<QueueRow>& rows) {
  Table table{"orders",
              "",
              {{"case", "CASE"},
               {"order", "ORDER"},
               {"knows", "KNOWS"},
               {"preempts", "PREEMPTS"},
               {"jobs", "JOBS"},
               {"mean_wait_seconds", "MEAN WAIT s", Shown::Plain, 0},
               {"of_first_fit", "OF FIRST FIT", Shown::Plain, 2},
               {"median_wait_seconds", "MEDIAN s", Shown::Plain, 0},
               {"p90_wait_seconds", "P90 s", Shown::Plain, 0},
               {"p99_wait_seconds", "P99 s", Shown::Plain, 0},
               {"longest_wait_seconds", "LONGEST s", Shown::Plain, 0},
               {"worst_hundredth_mean_wait_seconds", "WORST 1 % s", Shown::Plain, 0},
               {"overtaken_percent", "OVERTAKEN", Shown::Percent, 1},
               {"mean_bounded_slowdown", "SLOWDOWN", Shown::Plain, 1},
               {"preemptions", "PREEMPTED"}},
              {}};
  for (const QueueRow& row : rows) {
    const QueueRow* first_fit = first_fit_of(rows, row.of);
    const Figures& f = row.figures;
    TableValue ratio;
    if (first_fit != nullptr) ratio = f.mean_wait / first_fit->figures.mean_wait;
    table.rows.push_back({row.of,
                          name_of(row),
                          std::string(knowledge_name(row.mode)),
                          std::string(row.mode == QueueMode::Preempting ? "yes" : "no"),
                          f.ended,
                          f.mean_wait,
                          ratio,
                          f.median_wait,
                          f.p90_wait,
                          f.p99_wait,
                          f.longest_wait,
                          f.worst_wait,
                          f.overtaken,
                          f.mean_slowdown,
                          f.preemptions});
  }
  return table;
}

std::string with_mode(std::string name, QueueMode mode) {
  if (mode == QueueMode::Limits) name += ", limits";
  if (mode == QueueMode::Preempting) name += ", preempting";
  return name;
}

bool is_fifo(const QueueRow& row) { return row.order == queue_peer_name(QueuePeer::Fifo); }

/// Without FIFO, beside which all others look alike.
Chart chart_of(const std::vector<QueueRow>& rows, const std::string& of) {
  Chart chart{fmt::format("Mean wait, {}", of),
              "who orders the queue",
              "hours",
              Chart::Kind::Bar,
              {{"mean wait", {}}},
              {}};
  for (const QueueRow& row : rows) {
    if (row.of != of || is_fifo(row)) continue;
    chart.series.front().points.push_back(
        {static_cast<double>(chart.categories.size()), row.figures.mean_wait / 3600});
    chart.categories.push_back(row.order == kOurs || row.guard.count() > 0
                                   ? with_mode(name_of(row), row.mode)
                                   : name_of(row));
  }
  return chart;
}

Chart frontier_of(const std::vector<QueueRow>& rows, const std::string& of, QueueMode mode) {
  Chart chart{
      with_mode(of, mode), "mean wait, hours", "longest wait, days", Chart::Kind::Marks, {}, {}};
  for (const QueueRow& row : rows) {
    if (row.of != of || row.mode != mode || is_fifo(row)) continue;
    if (chart.series.empty() || chart.series.back().name != row.order) {
      chart.series.push_back({row.order, {}});
    }
    chart.series.back().points.push_back(
        {row.figures.mean_wait / 3600, row.figures.longest_wait / 86'400});
  }
  return chart;
}

}  // namespace

const std::vector<PublicCase>& public_cases() {
  static const std::vector<PublicCase> cases = {
      {kCluster,
       "philly_jobs.csv.gz",
       "a month of all jobs of the Philly trace on 64 nodes of 8 GPUs",
       {64, kGpusOfNode}},
      {kLabServer,
       "philly_jobs.csv.gz",
       "the jobs of up to 8 GPUs of one of its groups on 2 nodes of 8",
       {2, kGpusOfNode}},
      {"venus",
       "venus_jobs.csv.gz",
       "the Helios trace of Venus on 80 nodes of 8",
       {80, kGpusOfNode}},
  };
  return cases;
}

Result<QueueCase> queue_case(const PublicCase& one, const Trace& whole) {
  QueueCase made{std::string(one.name), one.machines, whole};
  if (one.name == kCluster) made.jobs = days_of(whole, kFirstDay, kLastDay);
  if (one.name == kLabServer) {
    std::erase_if(made.jobs.jobs, [](const TraceJob& job) {
      return job.spec.user.name != kLabGroup || job.spec.request.gpus > kGpusOfNode;
    });
  }
  if (made.jobs.jobs.empty()) {
    return fail(Code::Usage, fmt::format("the trace has no jobs of case {}", one.name));
  }
  return made;
}

std::string_view queue_mode_name(QueueMode mode) {
  switch (mode) {
    case QueueMode::Nothing:
      return "nothing";
    case QueueMode::Limits:
      return "limits";
    case QueueMode::Preempting:
      return "preempting";
  }
  return "";
}

std::vector<QueueMode> queue_modes() {
  return {QueueMode::Nothing, QueueMode::Limits, QueueMode::Preempting};
}

std::vector<QueueRow> queue_rows(const std::vector<QueueCase>& cases,
                                 const QueueRules& rules,
                                 const Progress& progress) {
  std::vector<QueueRow> rows;
  const std::vector<Contestant> all = contestants(rules);
  const auto plays = static_cast<double>(cases.size() * all.size());
  for (const QueueCase& of : cases) {
    for (const Contestant& one : all) {
      const auto before = static_cast<double>(rows.size());
      const auto at = [&](double done, const std::string& what) {
        if (progress) progress((before + done) / plays, what);
      };
      at(0, label_of(one));
      const Played played = play_one(one, of.jobs, of.machines, rules.peers, at);
      rows.push_back({of.name, played.label, one.mode, one.guard, figures_of(played)});
    }
  }
  return rows;
}

Report queue_report(const std::vector<QueueRow>& rows) {
  Report report;
  report.kind = "LabQueue";
  report.title = "Waiting by who orders the queue";
  report.tables = {table_of(rows)};
  for (const QueueRow& row : rows) {
    const QueueRow* first_fit = first_fit_of(rows, row.of);
    if (row.order != kOurs || first_fit == nullptr) continue;
    if (row.figures.longest_wait <= first_fit->figures.longest_wait) continue;
    report.notes.push_back(
        fmt::format("{}: one job waits longer than any under first fit, knowing {}{}",
                    row.of,
                    knowledge_name(row.mode),
                    row.mode == QueueMode::Preempting ? ", preempting" : ""));
  }
  for (const std::string& of : cases_of(rows)) report.charts.push_back(chart_of(rows, of));
  return report;
}

std::vector<Chart> queue_frontier(const std::vector<QueueRow>& rows) {
  std::vector<Chart> charts;
  for (const std::string& of : cases_of(rows)) {
    for (const QueueMode mode : queue_modes()) {
      Chart chart = frontier_of(rows, of, mode);
      if (!chart.series.empty()) charts.push_back(std::move(chart));
    }
  }
  return charts;
}

}  // namespace gflow::lab
