// SPDX-License-Identifier: Apache-2.0
// A trace is read or refused with its line; what is read is in order, from 0 on, and nothing in it
// is negative.
#include "base/text.h"
#include "lab/trace.h"
#include "require.h"

using gflow::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto trace = gflow::lab::read_trace(gflow::fuzz::text_of(data, size), "t.csv");
  if (!trace) {
    require(trace.error().message.starts_with("t.csv:"));
    require(gflow::printable(trace.error().message) == trace.error().message);
    return 0;
  }
  gflow::lab::spread_over_nodes(*trace, 8);
  std::chrono::milliseconds before{0};
  for (const gflow::lab::TraceJob& job : trace->jobs) {
    require(job.submitted >= before);
    before = job.submitted;
    require(job.run_time.count() >= 0);
    require(job.spec.request.gpus >= 0 && job.spec.request.nodes >= 1);
    require(job.spec.request.share.parts > 0);
  }
  require(!trace->jobs.empty() && trace->jobs.front().submitted.count() == 0);
  return 0;
}
