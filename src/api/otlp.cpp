// SPDX-License-Identifier: Apache-2.0
#include "api/otlp.h"

#include <nlohmann/json.hpp>

#include "base/version.h"

namespace gflow::api {
namespace {

using OtlpJson = nlohmann::json;

// opentelemetry/proto/trace/v1/trace.proto
constexpr int kInternal = 1;
constexpr int kError = 2;

/// 64-bit numbers are texts there, as JavaScript's numbers are too short for them.
OtlpJson nanoseconds(WallTime time) {
  using std::chrono::nanoseconds;
  return std::to_string(std::chrono::duration_cast<nanoseconds>(time.time_since_epoch()).count());
}

OtlpJson otlp_value(const SpanAttributes::value_type::second_type& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    return {{"intValue", std::to_string(*number)}};
  }
  if (const auto* number = std::get_if<double>(&value)) return {{"doubleValue", *number}};
  return {{"stringValue", std::get<std::string>(value)}};
}

OtlpJson otlp_list(const SpanAttributes& attributes) {
  OtlpJson list = OtlpJson::array();
  for (const auto& [key, value] : attributes) {
    list.push_back({{"key", key}, {"value", otlp_value(value)}});
  }
  return list;
}

OtlpJson otlp_span(const Span& span) {
  OtlpJson made = {{"traceId", span.trace_id},
                   {"spanId", span.span_id},
                   {"name", span.name},
                   {"kind", kInternal},
                   {"startTimeUnixNano", nanoseconds(span.start)},
                   {"endTimeUnixNano", nanoseconds(span.end)},
                   {"attributes", otlp_list(span.attributes)}};
  if (!span.parent_id.empty()) made["parentSpanId"] = span.parent_id;
  if (!span.error.empty()) made["status"] = {{"code", kError}, {"message", span.error}};
  return made;
}

}  // namespace

std::string write_otlp(const SpanAttributes& resource, const std::vector<Span>& spans) {
  OtlpJson list = OtlpJson::array();
  for (const Span& span : spans) list.push_back(otlp_span(span));
  const OtlpJson scope = {{"scope", {{"name", "gflow"}, {"version", kVersion}}},
                          {"spans", std::move(list)}};
  const OtlpJson all = {{"resource", {{"attributes", otlp_list(resource)}}},
                        {"scopeSpans", OtlpJson::array({scope})}};
  const OtlpJson document = {{"resourceSpans", OtlpJson::array({all})}};
  return document.dump(-1, ' ', false, OtlpJson::error_handler_t::replace);
}

}  // namespace gflow::api
