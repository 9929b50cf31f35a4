// SPDX-License-Identifier: Apache-2.0
#include "claims/matcher.h"

#include <fmt/format.h>

#include <utility>

namespace gflow::claims {
namespace {

constexpr std::size_t kMostSelectors = 4096;
constexpr std::size_t kMostAnswers = 1'000'000;
/// Of one selector for all devices, beside what it may take for each: one thread decides, and who
/// makes claims shall not keep it from all others.
constexpr long kMostSteps = 500'000;
constexpr long kStepsOfDevice = 500;

}  // namespace

const Result<bool>& Matcher::holds(const std::string& selector, const Device& device) {
  if (known_.size() > kMostSelectors || kept_ > kMostAnswers) {
    known_.clear();
    kept_ = 0;
  }
  auto at = known_.find(selector);
  if (at == known_.end()) {
    at = known_.emplace(selector, Known{CelExpression::read(selector)}).first;
  }
  Known& known = at->second;
  const auto answer = known.of.find(device.serial);
  if (answer != known.of.end()) return answer->second;
  const bool is_long =
      known.steps > kMostSteps + kStepsOfDevice * static_cast<long>(known.of.size());
  Result<bool> worked_out =
      is_long            ? Result<bool>(fail(Code::Exhausted, "it takes too long for all devices"))
      : known.expression ? known.expression->holds(device.value, known.steps)
                         : Result<bool>(std::unexpected(known.expression.error()));
  // Of what cannot be read it knows nothing: what is false without that is not taken either way.
  const bool may_hold = !worked_out || *worked_out;
  if (known.expression && !device.trouble.empty() && may_hold) {
    worked_out = fail(Code::Usage, device.trouble);
  }
  ++kept_;
  return known.of.emplace(device.serial, std::move(worked_out)).first->second;
}

Result<bool> Matcher::hold(const std::vector<std::string>& selectors, const Device& device) {
  for (std::size_t i = 0; i < selectors.size(); ++i) {
    const Result<bool>& answer = holds(selectors[i], device);
    if (!answer) return with_context(answer.error(), fmt::format("selector {}", i + 1));
    if (!*answer) return false;
  }
  return true;
}

}  // namespace gflow::claims
