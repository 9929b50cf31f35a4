// SPDX-License-Identifier: Apache-2.0
#include "core/trace_context.h"

#include <fmt/format.h>

#include <algorithm>

namespace gflow {
namespace {

bool is_hex(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_id(std::string_view text) {
  return is_hex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

/// FNV-1a, then the finisher of splitmix64: what differs in one bit differs in half of them.
std::uint64_t mixed(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001B3U;
  }
  hash = (hash ^ (hash >> 30U)) * 0xBF58476D1CE4E5B9U;
  hash = (hash ^ (hash >> 27U)) * 0x94D049BB133111EBU;
  hash ^= hash >> 31U;
  return hash == 0 ? 1 : hash;
}

std::string identity(std::string_view node, const Job& job, std::string_view what) {
  return fmt::format("{}/{}/{}/{}/{}",
                     node,
                     job.id.value,
                     job.submitted.time_since_epoch().count(),
                     job.spec.user.uid,
                     what);
}

}  // namespace

std::optional<TraceContext> parse_traceparent(std::string_view text) {
  // 2 digits, 32, 16 and 2, with "-" between them.
  constexpr std::size_t kTrace = 3;
  constexpr std::size_t kSpan = 36;
  constexpr std::size_t kFlags = 53;
  constexpr std::size_t kSize = 55;
  if (text.size() < kSize || text[kTrace - 1] != '-' || text[kSpan - 1] != '-' ||
      text[kFlags - 1] != '-') {
    return std::nullopt;
  }
  const std::string_view version = text.substr(0, 2);
  if (!is_hex(version) || version == "ff") return std::nullopt;
  if (text.size() > kSize && (version == "00" || text[kSize] != '-')) return std::nullopt;
  const std::string_view flags = text.substr(kFlags, 2);
  const std::string_view trace = text.substr(kTrace, 32);
  const std::string_view span = text.substr(kSpan, 16);
  if (!is_id(trace) || !is_id(span) || !is_hex(flags)) return std::nullopt;
  constexpr std::string_view kOdd = "13579bdf";
  return TraceContext{std::string(trace), std::string(span), kOdd.contains(flags[1])};
}

std::string traceparent_text(const TraceContext& context) {
  return fmt::format(
      "00-{}-{}-{}", context.trace_id, context.span_id, context.sampled ? "01" : "00");
}

std::optional<TraceContext> trace_context_in(const std::vector<std::string>& environment) {
  constexpr std::string_view kName = "TRACEPARENT=";
  for (const std::string& line : environment) {
    if (line.starts_with(kName)) {
      return parse_traceparent(std::string_view(line).substr(kName.size()));
    }
  }
  return std::nullopt;
}

std::string trace_id_of(std::string_view node, const Job& job) {
  return fmt::format("{:016x}{:016x}",
                     mixed(identity(node, job, "trace")),
                     mixed(identity(node, job, "trace, the rest")));
}

std::string span_id_of(std::string_view node, const Job& job, std::string_view what) {
  return fmt::format("{:016x}", mixed(identity(node, job, what)));
}

}  // namespace gflow
