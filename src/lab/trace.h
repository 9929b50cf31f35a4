// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/job.h"

namespace gflow::lab {

/// A job of a trace: what was asked for, when, and how long it ran once it did.
struct TraceJob {
  JobSpec spec;  ///< request.gpus may be more than any node has: see spread_over_nodes()
  std::chrono::milliseconds submitted{0};  ///< after the first of the trace
  std::chrono::milliseconds run_time{0};
  /// The same clock: when its own scheduler started it; empty if the trace does not say.
  std::optional<std::chrono::milliseconds> started{};
};

struct Trace {
  std::vector<TraceJob> jobs;      ///< by submission
  std::optional<WallTime> begins;  ///< when the first was submitted, if the trace has a calendar
  std::string scheduler;           ///< who started its jobs; "" if it does not say when
  std::vector<std::string> notes;  ///< for people: what was left out
};

constexpr std::size_t kMaxTraceJobs = 5'000'000;

/// Reads a trace, what sacct prints, too: docs/format/trace.md. `file` is what errors name:
/// "FILE:LINE: ...". Errors: Usage.
[[nodiscard]] Result<Trace> read_trace(std::string_view text, const std::string& file);

/// The jobs submitted from day `first` up to, never including, day `last`, counted from the first
/// job; times start anew.
[[nodiscard]] Trace days_of(Trace trace, int first, int last);

/// Gives jobs that want more devices than a node has whole nodes of `per_node` devices, as many as
/// are needed.
void spread_over_nodes(Trace& trace, int per_node);

}  // namespace gflow::lab
