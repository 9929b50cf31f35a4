// SPDX-License-Identifier: Apache-2.0
#include "cli/stats/usage_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "base/text.h"
#include "base/translate.h"
#include "command/table.h"
#include "command/times.h"
#include "command/wrap.h"
#include "core/job_sight.h"

namespace gflow::cli {

namespace {

std::uint64_t count(const api::StatusCounts& states, StatusSet which) {
  std::uint64_t sum = 0;
  for (const StatusInfo& info : kStatuses) {
    if (which.contains(info.status)) sum += states.of(info.status);
  }
  return sum;
}

StatusSet not_as_wished() {
  StatusSet found;
  for (const StatusInfo& info : kStatuses) {
    if (info.phase == Phase::Ended && info.tone == Tone::Bad) found.insert(info.status);
  }
  return found;
}

/// "0.5", "12", "1234.2": no more digits than a table is read with.
std::string amount_text(double amount) {
  if (amount == 0) return "0";
  if (amount < 0.005) return "<0.01";
  std::string text = fmt::format("{:.2f}", amount);
  if (amount >= 100) text = fmt::format("{:.1f}", amount);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string time_text(const std::optional<std::chrono::milliseconds>& time) {
  if (!time) return "-";
  return brief_duration(std::chrono::round<std::chrono::seconds>(*time));
}

struct UsageColumn {
  Column column;
  std::string help;
  std::string (*text)(const api::UsageView& usage);
};

std::vector<UsageColumn> usage_columns() {
  const auto number = [](std::string header, int leaves = 0) {
    return Column{.header = std::move(header), .leaves = leaves, .align = Align::Right};
  };
  return {
      {number(tr("ENDED"), 1),
       tr("jobs that ended in the time"),
       [](const api::UsageView& usage) { return std::to_string(count(usage.states, kEnded)); }},
      {number(tr("FAILED"), 5),
       tr("of these, failed, timed out or lost"),
       [](const api::UsageView& usage) {
         return std::to_string(count(usage.states, not_as_wished()));
       }},
      {number(tr("RUNNING"), 3),
       tr("jobs that hold what they were given, now"),
       [](const api::UsageView& usage) { return std::to_string(count(usage.states, kActive)); }},
      {number(tr("WAITING"), 2),
       tr("jobs that wait or are on hold, now"),
       [](const api::UsageView& usage) { return std::to_string(count(usage.states, kPending)); }},
      {number(tr("GPUS"), 6),
       tr("GPUs held now"),
       [](const api::UsageView& usage) { return amount_text(usage.gpus_held); }},
      {number(tr("GPU-HOURS")),
       tr("GPUs times hours held in the time, also by jobs that run and that ended later"),
       [](const api::UsageView& usage) { return amount_text(usage.gpu_seconds / 3600); }},
      {number(tr("CPU-HOURS"), 9),
       tr("processor time their last attempts used"),
       [](const api::UsageView& usage) { return amount_text(usage.cpu_seconds / 3600); }},
      {number(tr("WAIT"), 4),
       tr("median of the time from submission to the last start"),
       [](const api::UsageView& usage) { return time_text(usage.waits.median); }},
      {number(tr("WAIT-P90"), 8),
       tr("90 of 100 waited no longer"),
       [](const api::UsageView& usage) { return time_text(usage.waits.p90); }},
      {number(tr("RUN"), 4),
       tr("median of the run time"),
       [](const api::UsageView& usage) { return time_text(usage.run_times.median); }},
      {number(tr("RUN-P90"), 7),
       tr("90 of 100 ran no longer"),
       [](const api::UsageView& usage) { return time_text(usage.run_times.p90); }},
  };
}

/// What a part is called: users by name, projects too, and what has none.
std::string name_of(const api::UsageView& usage, const UsageViewer& viewer) {
  if (!usage.name.empty()) return printable(usage.name);
  return viewer.columns == 0 ? "-" : tr("(none)");
}

Row row_of(std::string name, const std::vector<UsageColumn>& columns, const api::UsageView& usage) {
  Row row{{std::move(name)}};
  for (const UsageColumn& column : columns) row.push_back({column.text(usage)});
  return row;
}

/// "Jobs that ended since 2026-10-27 18:00:00, and those that wait or run now."
std::string counted(const api::StatisticsView& statistics, const Zone& zone) {
  const auto local = [&](WallTime time) { return local_text(time, zone.offset(time)); };
  const auto& since = statistics.since;
  const auto& until = statistics.until;
  if (since && until) {
    return tr_format("Jobs that ended from {} until {}, and those that wait or run now.",
                     local(*since),
                     local(*until));
  }
  if (since) {
    return tr_format("Jobs that ended since {}, and those that wait or run now.", local(*since));
  }
  if (until) {
    return tr_format("Jobs that ended before {}, and those that wait or run now.", local(*until));
  }
  return tr("Jobs that ended, and those that wait or run now.");
}

/// A line for each thing to know; long ones are several.
std::vector<std::string> heading(const api::StatisticsView& statistics, const UsageViewer& viewer) {
  const Zone& zone = viewer.zone;
  std::vector<std::string> sentences = {counted(statistics, zone)};
  const auto& known_since = statistics.known_since;
  if (known_since && (!statistics.since || *known_since > *statistics.since)) {
    sentences.push_back(
        tr_format("gflow has forgotten some that ended until {}: sums from before are too small.",
                  local_text(*known_since, zone.offset(*known_since))));
  }
  if (statistics.others_jobs == kOthersJobsNames.front()) {
    sentences.push_back(tr("These are your own jobs alone: others' are not shown to you."));
  }
  std::vector<std::string> lines;
  for (const std::string& sentence : sentences) {
    for (std::string& line : wrap(sentence, viewer.columns)) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

std::string usage_text(const api::StatisticsView& statistics, const UsageViewer& viewer) {
  const std::vector<UsageColumn> described = usage_columns();
  std::vector<Column> columns = {
      {.header =
           statistics.by == api::usage_by_name(api::UsageBy::Project) ? tr("PROJECT") : tr("USER"),
       .cut = Cut::Middle,
       .narrowest = 8}};
  for (const UsageColumn& one : described) columns.push_back(one.column);
  std::vector<api::UsageView> parts = statistics.parts;
  std::ranges::stable_sort(parts, std::ranges::greater(), &api::UsageView::gpu_seconds);
  std::vector<Row> rows;
  for (const api::UsageView& part : parts)
    rows.push_back(row_of(name_of(part, viewer), described, part));
  // A program could not tell it from a user or project of that name: --by none has it alone.
  if (viewer.columns > 0 || statistics.by == api::usage_by_name(api::UsageBy::None)) {
    rows.push_back(row_of(tr("all"), described, statistics.total));
    for (Cell& cell : rows.back()) cell.style = Style::Bold;
  }
  if (viewer.columns == 0) return table_text(columns, rows, Header::Shown, viewer.paint);
  const std::string head = join(heading(statistics, viewer), "\n");
  return head + "\n" + screen_table(columns, rows, viewer.columns, Header::Shown, viewer.paint);
}

std::vector<Example> usage_legend() {
  std::vector<Example> lines;
  for (const UsageColumn& column : usage_columns()) {
    lines.push_back({column.column.header, column.help});
  }
  return lines;
}

}  // namespace gflow::cli
