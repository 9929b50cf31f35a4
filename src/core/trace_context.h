// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/job.h"

/// Where in a distributed trace something belongs: https://www.w3.org/TR/trace-context/.
namespace gflow {

struct TraceContext {
  std::string trace_id;  ///< 32 hexadecimal digits, not all 0
  std::string span_id;   ///< 16 of them, not all 0
  bool sampled = true;   ///< whoever began the trace wants it recorded

  friend bool operator==(const TraceContext&, const TraceContext&) = default;
};

/// Reads a traceparent; of a version to come, what version 00 knows of it. Empty if it is none.
[[nodiscard]] std::optional<TraceContext> parse_traceparent(std::string_view text);
[[nodiscard]] std::string traceparent_text(const TraceContext& context);
/// What TRACEPARENT says among "NAME=value" lines.
[[nodiscard]] std::optional<TraceContext> trace_context_in(
    const std::vector<std::string>& environment);

/// The ids of what a job does are made of the job, so that a daemon that was restarted goes on with
/// the same: nothing of them is stored.
[[nodiscard]] std::string trace_id_of(std::string_view node, const Job& job);
/// `what` tells the spans of a job apart: "job", "queued 1".
[[nodiscard]] std::string span_id_of(std::string_view node, const Job& job, std::string_view what);

}  // namespace gflow
