// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/time.h"

/// Spans as OTLP/HTTP takes them in JSON:
/// https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding.
namespace gflow::api {

using SpanAttributes =
    std::vector<std::pair<std::string, std::variant<std::string, std::int64_t, double>>>;

struct Span {
  std::string trace_id;  ///< hexadecimal, as all ids
  std::string span_id;
  std::string parent_id;  ///< "" for the root of a trace
  std::string name;
  WallTime start;
  WallTime end;
  SpanAttributes attributes;
  std::string error;  ///< why it failed; "" if it did not
};

/// The body of a request to /v1/traces; `resource` is who sends it.
[[nodiscard]] std::string write_otlp(const SpanAttributes& resource,
                                     const std::vector<Span>& spans);

}  // namespace gflow::api
