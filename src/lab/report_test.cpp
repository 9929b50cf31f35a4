// SPDX-License-Identifier: Apache-2.0
#include "lab/report.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lab/run_times.h"

namespace gflow::lab {
namespace {

using namespace std::chrono_literals;

Report sample() {
  Report report{"LabSample", "A sample", {{"seed", "1"}}, {"done"}, {}, {}};
  report.tables = {
      {"rows",
       "Rows",
       {{"name", "NAME"},
        {"wait_seconds", "WAIT", Shown::Duration, 1},
        {"busy_percent", "BUSY", Shown::Percent, 1}},
       {{std::string("a,\"b\""), 11'520.04, 95.43}, {std::string("c"), std::nan(""), {}}}}};
  report.charts = {
      {"Lines", "hours", "GPUs", Chart::Kind::Line, {{"a<b", {{0, 0}, {1, 8}}}}, {}},
      {"Bars", "policy", "%", Chart::Kind::Bar, {{"x", {{0, 3}, {1, 4}}}}, {"one", "two"}}};
  return report;
}

TEST(Report, IsTextForPeople) {
  EXPECT_EQ(report_text(sample()),
            "A sample\n"
            "  seed         1\n"
            "\n"
            "Rows\n"
            "NAME    WAIT    BUSY\n"
            "a,\"b\"  3h12m  95.4 %\n"
            "c          -       -\n"
            "\n"
            "done\n");
}

TEST(Report, IsCsvAndJsonForPrograms) {
  EXPECT_EQ(report_csv(sample()),
            "name,wait_seconds,busy_percent\n\"a,\"\"b\"\"\",11520.0,95.4\nc,,\n");
  EXPECT_EQ(
      report_json(sample()),
      "{\n  \"apiVersion\": \"gflow/v1\",\n  \"kind\": \"LabSample\",\n"
      "  \"facts\": {\n    \"seed\": \"1\"\n  },\n  \"notes\": [\n    \"done\"\n  ],\n"
      "  \"rows\": [\n    {\n      \"name\": \"a,\\\"b\\\"\",\n      \"wait_seconds\": 11520.0,\n"
      "      \"busy_percent\": 95.4\n    },\n    {\n      \"name\": \"c\",\n"
      "      \"wait_seconds\": null,\n      \"busy_percent\": null\n    }\n  ]\n}\n");
}

TEST(Plot, IsOneSvgThatLoadsNothing) {
  const std::string svg = svg_text(sample().charts);
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_NE(svg.find("a&lt;b"), std::string::npos);
  EXPECT_NE(svg.find("prefers-color-scheme:dark"), std::string::npos);
  EXPECT_EQ(svg.find("href"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg, svg_text(sample().charts));
}

TEST(Plot, AnEmptyChartIsAFrame) {
  const Chart nothing{"Nothing", "x", "y", Chart::Kind::Line, {{"none", {}}}, {}};
  EXPECT_EQ(svg_text(std::span(&nothing, 1)).find("nan"), std::string::npos);
}

TEST(Plot, StepsReadWell) {
  EXPECT_EQ(axis_steps(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(axis_steps(3, 97, 5), (std::vector<double>{0, 20, 40, 60, 80, 100}));
  EXPECT_EQ(axis_steps(0, 0, 5).front(), 0);
}

TEST(RunTimes, AreThoseOfJobsThatAreMostAlike) {
  RunTimes times;
  JobSpec train;
  train.user.name = "ann";
  train.name = "train";
  train.request.gpus = 4;
  EXPECT_EQ(times.left(train, 0s).median, 1h);
  EXPECT_EQ(times.left(train, 0s).likeness, Likeness::Nothing);
  EXPECT_EQ(times.left(train, 2h).median, 2h) << "as long again";
  train.time_limit = 20min;
  EXPECT_EQ(times.left(train, 5min).median, 15min);
  EXPECT_EQ(times.left(train, 0s).likeness, Likeness::TimeLimit);
  JobSpec other = train;
  other.name = "other";
  times.learn(other, 10min);
  EXPECT_EQ(times.left(train, 0s).median, 10min);
  EXPECT_EQ(times.left(train, 0s).likeness, Likeness::SameGpus);
  for (const auto span : {1min, 2min, 9min}) times.learn(train, span);
  EXPECT_EQ(times.left(train, 0s).median, 2min);
  EXPECT_EQ(times.left(train, 0s).likeness, Likeness::SameName);
  EXPECT_EQ(times.left(train, 0s).runs, 3U);
  EXPECT_EQ(times.left(train, 30s).median, 90s);
  EXPECT_EQ(times.left(train, 3min).median, 6min) << "of those that ran longer";
  EXPECT_EQ(times.left(train, 3min).runs, 1U);
  EXPECT_EQ(times.left(train, 9min).median, 9min) << "as long again";
  EXPECT_EQ(times.left(train, 9min).runs, 0U);
  EXPECT_EQ(times.left(train, 19min).median, 1min) << "up to its limit";
}

TEST(RunTimes, HaveQuartilesUnderTheLimit) {
  RunTimes times;
  JobSpec train;
  train.name = "train";
  for (int minutes = 1; minutes <= 9; ++minutes) times.learn(train, std::chrono::minutes(minutes));
  for (const auto so_far : {0s, 90s, 200s, 500s, 900s}) {
    const RunEstimate run = times.left(train, so_far);
    EXPECT_LE(run.shorter, run.median) << so_far.count();
    EXPECT_LE(run.median, run.longer) << so_far.count();
  }
  EXPECT_EQ(times.left(train, 0s).shorter, 3min);
  EXPECT_EQ(times.left(train, 0s).median, 5min);
  EXPECT_EQ(times.left(train, 0s).longer, 7min);
  train.time_limit = 6min;
  EXPECT_EQ(times.left(train, 0s).longer, 6min);
  EXPECT_EQ(times.left(train, 4min).longer, 2min);
}

}  // namespace
}  // namespace gflow::lab
