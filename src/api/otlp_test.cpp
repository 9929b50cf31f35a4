// SPDX-License-Identifier: Apache-2.0
#include "api/otlp.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace gflow::api {
namespace {

TEST(Otlp, IsWhatACollectorReads) {
  Span span;
  span.trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";
  span.span_id = "00f067aa0ba902b7";
  span.parent_id = "1111111111111111";
  span.name = "running";
  span.start = WallTime(std::chrono::milliseconds(1'772'366'400'123));
  span.end = span.start + std::chrono::seconds(2);
  span.attributes = {{"gflow.job.id", std::int64_t{7}}, {"part", 0.5}, {"name", "a\xFF"}};
  span.error = "Failed: exit code 1";
  const auto read = nlohmann::json::parse(write_otlp({{"service.name", "gflowd"}}, {span}));
  const auto want = nlohmann::json::parse(R"({"resourceSpans": [{
    "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "gflowd"}}]},
    "scopeSpans": [{"scope": {"name": "gflow", "version": "0.1.0"}, "spans": [{
      "traceId": "4bf92f3577b34da6a3ce929d0e0e4736", "spanId": "00f067aa0ba902b7",
      "parentSpanId": "1111111111111111", "name": "running", "kind": 1,
      "startTimeUnixNano": "1772366400123000000", "endTimeUnixNano": "1772366402123000000",
      "attributes": [{"key": "gflow.job.id", "value": {"intValue": "7"}},
                     {"key": "part", "value": {"doubleValue": 0.5}},
                     {"key": "name", "value": {"stringValue": "a\uFFFD"}}],
      "status": {"code": 2, "message": "Failed: exit code 1"}}]}]}]})");
  EXPECT_EQ(read, want);
}

}  // namespace
}  // namespace gflow::api
