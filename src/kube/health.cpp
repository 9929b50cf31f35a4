// SPDX-License-Identifier: Apache-2.0
#include "kube/health.h"

#include <fmt/format.h>

#include <utility>

namespace gflow::kube {
namespace {

/// The longest turn there is takes seconds: the first one, over tens of thousands of pods. Whoever
/// restarts one that is at it has it begin from the start, so this is far beyond.
constexpr std::chrono::seconds kLongestTurn{60};

}  // namespace

void Health::not_ready(std::string why) {
  const std::lock_guard lock(mutex_);
  unready_ = std::move(why);
}

std::string Health::unready() const {
  const std::lock_guard lock(mutex_);
  return unready_;
}

std::string Health::stuck(MonoTime now) const {
  const MonoTime began = turn_began_;
  if (began == kWaits || now - began < kLongestTurn) return {};
  const auto since = std::chrono::floor<std::chrono::seconds>(now - began);
  return fmt::format("the loop has been at one turn for {} s", since.count());
}

}  // namespace gflow::kube
