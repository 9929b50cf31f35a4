// SPDX-License-Identifier: Apache-2.0
#include "lab/trace.h"

#include <gtest/gtest.h>

namespace gflow::lab {
namespace {

using namespace std::chrono_literals;

struct Refused {
  const char* name;
  const char* text;
  const char* message;
};

TEST(Trace, NamesTheLineThatIsWrong) {
  const Refused cases[] = {
      {"nothing", "", "t.csv: no jobs"},
      {"only a header", "submit,duration,gpus\n", "t.csv: no jobs"},
      {"no duration",
       "submit,durations,gpus\n1,2,3\n",
       "t.csv:1: there is no column 'duration' (is it 'durations'?); docs/format/trace.md lists "
       "the "
       "columns"},
      {"twice", "submit,duration,gpus,timestamp\n", "t.csv:1: two columns say 'submit'"},
      {"few fields",
       "submit,duration,gpus\n1,2,3\n1,2\n",
       "t.csv:3: 2 fields, but there are 3 columns"},
      {"negative",
       "submit,duration,gpus\n1,-2,3\n",
       "t.csv:2: duration: '-2' is not a number from 0 on"},
      {"half a GPU", "0 60 0.5\n", "t.csv:1: gpus: '0.5' is not a whole number"},
      {"empty", "submit,duration,gpus\n1,,3\n", "t.csv:2: duration: '' is not a number from 0 on"},
      {"too long", "0 1e9 1\n", "t.csv:1: duration: '1e9' is more than 316224000"},
      {"no number", "0 nan 1\n", "t.csv:1: duration: 'nan' is not a number from 0 on"},
      {"open quote", "submit,duration,gpus\n1,2,\"3\n", "t.csv:2: a quote is not closed"},
      {"mixed",
       "submit,duration,gpus\n1,2,3\n2017-10-09 07:01:55,2,3\n",
       "t.csv:3: submit: some lines give a date, others seconds"},
      {"control characters",
       "submit,duration,gpus\n1,\x1b[2J,3\n",
       "t.csv:2: duration: '\\x1b[2J' is not a number from 0 on"},
  };
  for (const Refused& one : cases) {
    const auto trace = read_trace(one.text, "t.csv");
    ASSERT_FALSE(trace) << one.name;
    EXPECT_EQ(trace.error().message, one.message) << one.name;
  }
}

TEST(Trace, ReadsThePublishedOnes) {
  const auto philly = read_trace(
      "timestamp,duration,num_gpus,gpu_time,cluster\n"
      "2017-10-09 07:01:55,66.0,1,66.0,11cb48\n"
      "2017-10-09 06:13:03,2951.5,2,2951.0,6214e9\n",
      "philly.csv");
  ASSERT_TRUE(philly) << philly.error().message;
  ASSERT_EQ(philly->jobs.size(), 2U);
  EXPECT_EQ(rfc3339(*philly->begins), "2017-10-09T06:13:03.000Z");
  EXPECT_EQ(philly->jobs[0].spec.user.name, "6214e9");
  EXPECT_EQ(philly->jobs[0].run_time, 2951'500ms);
  EXPECT_EQ(philly->jobs[1].submitted, 48min + 52s);

  const auto blanks = read_trace("1740675 79 1 11cb48\n1741275 82 1 11cb48\n", "vc.txt");
  ASSERT_TRUE(blanks) << blanks.error().message;
  EXPECT_EQ(blanks->jobs[1].submitted, 600s);
  EXPECT_FALSE(blanks->begins);
}

TEST(Trace, ReadsEveryColumn) {
  const auto trace = read_trace(
      "submit,duration,gpus,user,share,cpus,memory,time_limit,priority,preemption\n"
      "5,60,2,\"ann, b\",0.25,4,16G,90,50,requeue\n",
      "t.csv");
  ASSERT_TRUE(trace) << trace.error().message;
  const JobSpec& spec = trace->jobs[0].spec;
  EXPECT_EQ(spec.user.name, "ann, b");
  EXPECT_EQ(spec.request.gpus, 2);
  EXPECT_EQ(spec.request.share, Share{2500});
  EXPECT_EQ(spec.request.mode, GpuMode::Fraction);
  EXPECT_EQ(spec.request.cpus, 4);
  EXPECT_EQ(spec.request.memory, Memory::gib(16));
  EXPECT_EQ(spec.time_limit, 90s);
  EXPECT_EQ(spec.priority, 50);
  EXPECT_EQ(spec.preemption, Preemption::Requeue);
}

TEST(Trace, DaysAreCountedFromTheFirstJob) {
  auto trace = *read_trace("0 1 1\n86399 1 1\n86400 1 1\n172800 1 1\n", "t");
  trace = days_of(std::move(trace), 1, 2);
  ASSERT_EQ(trace.jobs.size(), 1U);
  EXPECT_EQ(trace.jobs[0].submitted, 0ms);
}

TEST(Trace, LargeJobsGetWholeNodes) {
  auto trace = *read_trace("0 1 8\n0 1 12\n", "t");
  spread_over_nodes(trace, 8);
  EXPECT_EQ(trace.jobs[0].spec.request.nodes, 1);
  EXPECT_EQ(trace.jobs[1].spec.request.nodes, 2);
  EXPECT_EQ(trace.jobs[1].spec.request.gpus, 8);
}

}  // namespace
}  // namespace gflow::lab
