// SPDX-License-Identifier: Apache-2.0
#include "core/trace_context.h"

#include <gtest/gtest.h>

namespace gflow {
namespace {

TEST(TraceContext, ReadsWhatItIsAndNothingElse) {
  const std::string text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const TraceContext want{"4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", true};
  EXPECT_EQ(parse_traceparent(text), want);
  EXPECT_EQ(traceparent_text(want), text);
  TraceContext unsampled = want;
  unsampled.sampled = false;
  EXPECT_EQ(parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-02"),
            unsampled);
  EXPECT_EQ(parse_traceparent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"),
            want);
  for (const char* wrong : {"",
                            "00",
                            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
                            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
                            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more",
                            "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01"}) {
    EXPECT_FALSE(parse_traceparent(wrong)) << wrong;
  }
}

TEST(TraceContext, IsFoundInAnEnvironment) {
  const std::string text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  EXPECT_EQ(trace_context_in({"HOME=/x", "TRACEPARENT=" + text}), parse_traceparent(text));
  EXPECT_FALSE(trace_context_in({"TRACEPARENT=nonsense"}));
  EXPECT_FALSE(trace_context_in({"XTRACEPARENT=" + text}));
}

TEST(TraceContext, IdsAreTheJobs) {
  Job job;
  job.id = JobId(7);
  Job other;
  other.id = JobId(8);
  EXPECT_EQ(trace_id_of("n", job), trace_id_of("n", job));
  EXPECT_NE(trace_id_of("n", job), trace_id_of("n", other));
  EXPECT_NE(trace_id_of("n", job), trace_id_of("m", job));
  EXPECT_NE(span_id_of("n", job, "job"), span_id_of("n", job, "queued 1"));
  EXPECT_TRUE(parse_traceparent(
      traceparent_text({trace_id_of("n", job), span_id_of("n", job, "job"), true})));
}

}  // namespace
}  // namespace gflow
