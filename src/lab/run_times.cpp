// SPDX-License-Identifier: Apache-2.0
#include "lab/run_times.h"

#include <algorithm>
#include <array>
#include <utility>

namespace gflow::lab {
namespace {

using Span = RunEstimate::Span;

constexpr Span kNothingKnown = std::chrono::hours(1);
constexpr Span kLeast = std::chrono::seconds(1);

Span quartile(const std::vector<Span>& sorted, std::size_t number) {
  return std::max(sorted[(sorted.size() - 1) * number / 4], kLeast);
}

RunEstimate estimate(std::vector<Span> spans, Likeness likeness) {
  std::ranges::sort(spans);
  return {likeness, spans.size(), quartile(spans, 1), quartile(spans, 2), quartile(spans, 3)};
}

template <typename Change>
RunEstimate each(RunEstimate estimate, Change change) {
  for (Span* span : {&estimate.shorter, &estimate.median, &estimate.longer}) *span = change(*span);
  return estimate;
}

}  // namespace

std::string_view likeness_text(Likeness likeness) {
  constexpr std::array<std::string_view, 6> kTexts = {"same user and name",
                                                      "same user and GPUs",
                                                      "same user",
                                                      "all users",
                                                      "its time limit",
                                                      "nothing: 1h is assumed"};
  return kTexts.at(static_cast<std::size_t>(likeness));
}

RunEstimate RunEstimate::left(const JobSpec& spec, Span so_far) const {
  return each(*this, [&](Span whole) {
    Span left = whole > so_far ? whole - so_far : so_far;
    if (spec.time_limit) left = std::min(left, Span(*spec.time_limit) - so_far);
    return std::max(left, kLeast);
  });
}

RunEstimate RunEstimate::less(Span done) const {
  return each(*this, [done](Span whole) { return std::max(whole - done, kLeast); });
}

void RunTimes::learn(const JobSpec& spec, Span run_time) {
  const std::string& user = spec.user.name;
  seen_[{user, spec.name, -1}].push_back(run_time);
  seen_[{user, "", spec.request.gpus}].push_back(run_time);
  seen_[{user, "", -1}].push_back(run_time);
  seen_[{"", "", -1}].push_back(run_time);
}

RunEstimate RunTimes::of(const JobSpec& spec) const {
  const std::string& user = spec.user.name;
  const std::array<std::pair<Key, Likeness>, 4> levels = {{
      {{user, spec.name, -1}, Likeness::SameName},
      {{user, "", spec.request.gpus}, Likeness::SameGpus},
      {{user, "", -1}, Likeness::SameUser},
      {{"", "", -1}, Likeness::AllUsers},
  }};
  const Span most = spec.time_limit ? Span(*spec.time_limit) : Span::max();
  for (const auto& [key, likeness] : levels) {
    const auto at = seen_.find(key);
    if (at == seen_.end()) continue;
    return each(estimate(at->second, likeness), [most](Span span) { return std::min(span, most); });
  }
  const Span assumed = spec.time_limit ? most : kNothingKnown;
  const Likeness likeness = spec.time_limit ? Likeness::TimeLimit : Likeness::Nothing;
  return {likeness, 0, assumed, assumed, assumed};
}

}  // namespace gflow::lab
