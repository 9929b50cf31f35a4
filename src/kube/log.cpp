// SPDX-License-Identifier: Apache-2.0
#include "kube/log.h"

#include <fmt/format.h>

#include <ostream>

#include "base/text.h"
#include "os/clock.h"

namespace gflow::kube {

void Log::line(std::string_view level, std::string_view text) {
  const std::string whole =
      fmt::format("{} {}: {}\n", rfc3339(os::now().wall), level, printable(text));
  const std::lock_guard lock(mutex_);
  out_ << whole << std::flush;
}

void Log::warn_again(const std::string& text) {
  constexpr std::chrono::seconds kPause{30};
  constexpr std::size_t kMost = 256;
  const MonoTime now = os::now().mono;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(said_, [&](const auto& one) { return now - one.second > kPause; });
    if (said_.contains(text) || said_.size() >= kMost) return;
    said_[text] = now;
  }
  warn(text);
}

}  // namespace gflow::kube
