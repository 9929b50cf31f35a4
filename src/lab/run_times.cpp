// SPDX-License-Identifier: Apache-2.0
#include "lab/run_times.h"

#include <algorithm>

namespace gflow::lab {
namespace {

constexpr RunTimes::Span kNothingKnown = std::chrono::hours(1);
constexpr RunTimes::Span kLeast = std::chrono::seconds(1);

RunTimes::Span median(std::vector<RunTimes::Span> spans) {
  const auto middle = spans.begin() + static_cast<std::ptrdiff_t>((spans.size() - 1) / 2);
  std::ranges::nth_element(spans, middle);
  return *middle;
}

}  // namespace

void RunTimes::learn(const JobSpec& spec, Span run_time) {
  const std::string& user = spec.user.name;
  seen_[{user, spec.name, -1}].push_back(run_time);
  seen_[{user, "", spec.request.gpus}].push_back(run_time);
  seen_[{user, "", -1}].push_back(run_time);
  seen_[{"", "", -1}].push_back(run_time);
}

RunTimes::Span RunTimes::unlimited(const JobSpec& spec) const {
  const std::string& user = spec.user.name;
  using Key = std::tuple<std::string, std::string, int>;
  for (const Key& key : {Key{user, spec.name, -1},
                         Key{user, "", spec.request.gpus},
                         Key{user, "", -1},
                         Key{"", "", -1}}) {
    const auto at = seen_.find(key);
    if (at != seen_.end()) return std::max(median(at->second), kLeast);
  }
  return spec.time_limit ? Span(*spec.time_limit) : kNothingKnown;
}

RunTimes::Span RunTimes::of(const JobSpec& spec) const {
  const Span span = unlimited(spec);
  return spec.time_limit ? std::min(span, Span(*spec.time_limit)) : span;
}

RunTimes::Span RunTimes::left(const JobSpec& spec, Span so_far) const {
  const Span whole = of(spec);
  Span left = whole > so_far ? whole - so_far : so_far;
  if (spec.time_limit) left = std::min(left, Span(*spec.time_limit) - so_far);
  return std::max(left, kLeast);
}

}  // namespace gflow::lab
