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

/// `spans`: of what is left, ascending, at least one.
RunEstimate quartiles(const std::vector<Span>& spans, Likeness likeness) {
  const auto at = [&spans](std::size_t number) {
    return std::max(spans[(spans.size() - 1) * number / 4], kLeast);
  };
  return {likeness, spans.size(), at(1), at(2), at(3)};
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

void RunTimes::learn(const JobSpec& spec, Span run_time) {
  const std::string& user = spec.user.name;
  seen_[{user, spec.name, -1}].push_back(run_time);
  seen_[{user, "", spec.request.gpus}].push_back(run_time);
  seen_[{user, "", -1}].push_back(run_time);
  seen_[{"", "", -1}].push_back(run_time);
}

RunEstimate RunTimes::left(const JobSpec& spec, Span so_far) const {
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
    std::vector<Span> spans;
    for (const Span span : at->second) {
      if (span > so_far) spans.push_back(std::min(span, most) - so_far);
    }
    std::ranges::sort(spans);
    if (!spans.empty()) return quartiles(spans, likeness);
    RunEstimate passed = quartiles({std::min(so_far, most - so_far)}, likeness);
    passed.runs = 0;
    return passed;
  }
  const Likeness likeness = spec.time_limit ? Likeness::TimeLimit : Likeness::Nothing;
  const Span assumed = spec.time_limit ? most : kNothingKnown;
  RunEstimate guess = quartiles({assumed > so_far ? assumed - so_far : so_far}, likeness);
  guess.runs = 0;
  return guess;
}

}  // namespace gflow::lab
