// SPDX-License-Identifier: Apache-2.0
#include "lab/queue.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lab/data_file.h"

namespace gflow::lab {
namespace {

const Trace& lab_server() {
  static const Trace trace = [] {
    const std::string file = GFLOW_SOURCE_DIR "/tests/fixtures/philly/lab_server.csv.gz";
    const auto text = read_data(file);
    EXPECT_TRUE(text) << text.error().message;
    return read_trace(*text, file).value();
  }();
  return trace;
}

const Figures& figures(const std::vector<QueueRow>& rows,
                       std::string_view order,
                       Knowledge knows,
                       bool preempts) {
  const auto at = std::ranges::find_if(rows, [&](const QueueRow& row) {
    return row.order == order && row.knows == knows && row.preempts == preempts;
  });
  EXPECT_NE(at, rows.end()) << order;
  return at->figures;
}

/// What docs/benchmarks.md promises of a lab server, through the engine with its defaults.
TEST(Queue, LabServerWaitsLittleWhereJobsCanBeStopped) {
  const auto rows = queue_rows(lab_server(), {QueueCase::LabServer}, {}, {});
  ASSERT_TRUE(rows) << rows.error().message;
  for (const QueueRow& row : *rows) EXPECT_EQ(row.figures.ended, 16'072) << row.order;

  const Figures& first_fit = figures(*rows, "first fit", Knowledge::Nothing, false);
  const Figures& easy = figures(*rows, "EASY backfill", Knowledge::Classes, false);
  const Figures& knowing_nothing = figures(*rows, "gflow", Knowledge::Nothing, false);
  const Figures& limits = figures(*rows, "gflow", Knowledge::Classes, false);
  const Figures& preempting = figures(*rows, "gflow", Knowledge::Nothing, true);
  EXPECT_LE(preempting.mean_wait, first_fit.mean_wait / 9);
  EXPECT_LE(preempting.longest_wait, first_fit.longest_wait * 1.03);
  EXPECT_LE(knowing_nothing.mean_wait, first_fit.mean_wait);
  EXPECT_LE(limits.mean_wait, easy.mean_wait / 2);
  EXPECT_LE(limits.longest_wait, first_fit.longest_wait);

  const Report report = queue_report(*rows);
  EXPECT_EQ(report.tables.front().rows.size(), rows->size());
  EXPECT_EQ(report.charts.size(), 1U);
}

TEST(Queue, SaysWhichCaseHasNoJobs) {
  Trace trace = lab_server();
  for (TraceJob& job : trace.jobs) job.spec.user.name = "somebody";
  const auto rows = queue_rows(trace, {QueueCase::LabServer}, {}, {});
  ASSERT_FALSE(rows);
  EXPECT_NE(rows.error().message.find("lab-server"), std::string::npos);
}

}  // namespace
}  // namespace gflow::lab
