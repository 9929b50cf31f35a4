// SPDX-License-Identifier: Apache-2.0
#include "lab/queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "lab/queue_peers.h"

namespace gflow::lab {
namespace {

constexpr const char* kOurs = "gflow";
constexpr int kGpusOfNode = 8;
constexpr int kFirstDay = 28;
constexpr int kLastDay = 58;
constexpr std::string_view kLabGroup = "11cb48";  // the one of all groups that fills two machines

struct Setup {
  QueueCase of;
  std::string_view name;
  EqualNodes machines;
};
constexpr std::array kSetups = {Setup{QueueCase::Cluster, "cluster", {64, kGpusOfNode}},
                                Setup{QueueCase::LabServer, "lab-server", {2, kGpusOfNode}}};

const Setup& setup_of(QueueCase one) { return *std::ranges::find(kSetups, one, &Setup::of); }

std::chrono::seconds class_of(std::chrono::milliseconds run_time) {
  constexpr std::array kHours = {1, 4, 12, 24, 3 * 24, 7 * 24, 14 * 24, 30 * 24, 60 * 24};
  for (const int hours : kHours) {
    if (std::chrono::hours(hours) >= run_time) return std::chrono::hours(hours);
  }
  return std::chrono::ceil<std::chrono::seconds>(run_time);
}

Trace jobs_of(const Trace& trace, QueueCase one) {
  if (one == QueueCase::Cluster) return days_of(trace, kFirstDay, kLastDay);
  Trace part = trace;
  std::erase_if(part.jobs, [](const TraceJob& job) {
    return job.spec.user.name != kLabGroup || job.spec.request.gpus > kGpusOfNode;
  });
  return part;
}

/// One line of the table: an order and what it may use.
struct Contestant {
  std::optional<QueuePeer> peer;  ///< none: gflow
  Knowledge knows = Knowledge::Nothing;
  bool preempts = false;
};
constexpr std::array kContestants = {
    Contestant{QueuePeer::Fifo},
    Contestant{QueuePeer::FirstFit},
    Contestant{QueuePeer::Easy, Knowledge::Classes},
    Contestant{QueuePeer::Tiresias, Knowledge::Nothing, true},
    Contestant{{}, Knowledge::Nothing},
    Contestant{{}, Knowledge::Classes},
    Contestant{{}, Knowledge::Nothing, true},
};

std::string label_of(const Contestant& one) {
  return one.peer ? std::string(queue_peer_name(*one.peer)) : std::string(kOurs);
}

Played play_one(const Contestant& one,
                Trace trace,
                const EqualNodes& machines,
                const RunnerRules& rules,
                const Progress& progress) {
  for (TraceJob& job : trace.jobs) {
    job.spec.preemption = one.preempts ? Preemption::Requeue : Preemption::None;
    job.spec.time_limit.reset();
    if (one.knows == Knowledge::Classes) job.spec.time_limit = class_of(job.run_time);
  }
  if (one.peer) {
    Played played{label_of(one), play_peer(*one.peer, trace.jobs, machines, rules), {}, {}, 0};
    played.gpus = machines.nodes * machines.gpus;
    return played;
  }
  const std::string nodes = fmt::format("{}x{}", machines.nodes, machines.gpus);
  auto fleet = read_fleet(nodes);
  return play(subject_of(std::move(trace), std::move(*fleet), nodes), rules, kOurs, progress);
}

std::string_view knowledge_name(Knowledge knows) {
  return knows == Knowledge::Nothing ? "nothing" : "time limits";
}

const QueueRow* first_fit_of(const std::vector<QueueRow>& rows, QueueCase of) {
  const auto at = std::ranges::find_if(rows, [of](const QueueRow& row) {
    return row.of == of && row.order == queue_peer_name(QueuePeer::FirstFit);
  });
  return at == rows.end() ? nullptr : &*at;
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
               {"mean_bounded_slowdown", "SLOWDOWN", Shown::Plain, 1},
               {"preemptions", "PREEMPTED"}},
              {}};
  for (const QueueRow& row : rows) {
    const QueueRow* first_fit = first_fit_of(rows, row.of);
    const Figures& f = row.figures;
    TableValue ratio;
    if (first_fit != nullptr) ratio = f.mean_wait / first_fit->figures.mean_wait;
    table.rows.push_back({std::string(queue_case_name(row.of)),
                          row.order,
                          std::string(knowledge_name(row.knows)),
                          std::string(row.preempts ? "yes" : "no"),
                          f.ended,
                          f.mean_wait,
                          ratio,
                          f.median_wait,
                          f.p90_wait,
                          f.p99_wait,
                          f.longest_wait,
                          f.mean_slowdown,
                          f.preemptions});
  }
  return table;
}

/// Without FIFO, beside which all others look alike.
Chart chart_of(const std::vector<QueueRow>& rows, QueueCase of) {
  Chart chart{fmt::format("Mean wait, {}", queue_case_name(of)),
              "who orders the queue",
              "hours",
              Chart::Kind::Bar,
              {{"mean wait", {}}},
              {}};
  for (const QueueRow& row : rows) {
    if (row.of != of || row.order == queue_peer_name(QueuePeer::Fifo)) continue;
    std::string label = row.order;
    if (label == kOurs && row.knows == Knowledge::Classes) label += ", limits";
    if (label == kOurs && row.preempts) label += ", preempting";
    chart.series.front().points.push_back(
        {static_cast<double>(chart.categories.size()), row.figures.mean_wait / 3600});
    chart.categories.push_back(std::move(label));
  }
  return chart;
}

}  // namespace

std::string_view queue_case_name(QueueCase one) { return setup_of(one).name; }

std::vector<QueueCase> queue_cases() {
  std::vector<QueueCase> cases;
  for (const Setup& setup : kSetups) cases.push_back(setup.of);
  return cases;
}

Result<std::vector<QueueRow>> queue_rows(const Trace& trace,
                                         const std::vector<QueueCase>& cases,
                                         const RunnerRules& rules,
                                         const Progress& progress) {
  std::vector<QueueRow> rows;
  const auto all = static_cast<double>(cases.size() * kContestants.size());
  for (const QueueCase of : cases) {
    const Trace jobs = jobs_of(trace, of);
    if (jobs.jobs.empty()) {
      return fail(Code::Usage,
                  fmt::format("the trace has no jobs of case {}", queue_case_name(of)));
    }
    for (const Contestant& one : kContestants) {
      const auto before = static_cast<double>(rows.size());
      const auto at = [&](double done, const std::string& what) {
        if (progress) progress((before + done) / all, what);
      };
      at(0, label_of(one));
      const Played played = play_one(one, jobs, setup_of(of).machines, rules, at);
      rows.push_back({of, played.label, one.knows, one.preempts, figures_of(played)});
    }
  }
  return rows;
}

Report queue_report(const std::vector<QueueRow>& rows) {
  Report report;
  report.kind = "LabQueue";
  report.title = "Waiting by who orders the queue, on the Philly trace";
  report.tables = {table_of(rows)};
  for (const QueueRow& row : rows) {
    const QueueRow* first_fit = first_fit_of(rows, row.of);
    if (row.order != kOurs || first_fit == nullptr) continue;
    if (row.figures.longest_wait <= first_fit->figures.longest_wait) continue;
    report.notes.push_back(
        fmt::format("{}: one job waits longer than any under first fit, knowing {}{}",
                    queue_case_name(row.of),
                    knowledge_name(row.knows),
                    row.preempts ? ", preempting" : ""));
  }
  for (const QueueCase of : queue_cases()) {
    if (first_fit_of(rows, of) != nullptr) report.charts.push_back(chart_of(rows, of));
  }
  return report;
}

}  // namespace gflow::lab
