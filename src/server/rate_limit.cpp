// SPDX-License-Identifier: Apache-2.0
#include "server/rate_limit.h"

namespace gflow::server {

RateLimit::Verdict RateLimit::count(const std::string& who, MonoTime now) {
  if (tries_.size() >= kMost && !tries_.contains(who)) forget(now);
  Tries& tries = tries_[who];
  if (tries.count == 0 || now - tries.since >= kWindow) tries = {now, 0};
  ++tries.count;
  if (tries.count <= free_) return {};
  return {std::chrono::ceil<std::chrono::seconds>(tries.since + kWindow - now),
          tries.count == free_ + 1};
}

/// Those whose time is over; if there are none, all: memory is bounded whatever comes.
void RateLimit::forget(MonoTime now) {
  std::erase_if(tries_, [now](const auto& one) { return now - one.second.since >= kWindow; });
  if (tries_.size() >= kMost) tries_.clear();
}

}  // namespace gflow::server
