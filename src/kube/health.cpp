// SPDX-License-Identifier: Apache-2.0
#include "kube/health.h"

#include <fmt/format.h>

#include <utility>

#include "os/clock.h"

namespace gflow::kube {

void Health::not_ready(std::string why) {
  const std::lock_guard lock(mutex_);
  unready_ = std::move(why);
}

std::string Health::unready() const {
  const std::lock_guard lock(mutex_);
  return unready_;
}

void Health::wait(const std::function<void()>& until_there_is) {
  turn_began_ = kWaits;
  until_there_is();
  turn_began_ = os::now().mono;
}

std::string Health::stuck(MonoTime now) const {
  const MonoTime began = turn_began_;
  if (began == kWaits || now - began < longest_turn_) return {};
  const auto since = std::chrono::floor<std::chrono::seconds>(now - began);
  return fmt::format("the loop has been at one turn for {} s", since.count());
}

}  // namespace gflow::kube
