// SPDX-License-Identifier: Apache-2.0
#include "server/http_counters.h"

#include <algorithm>

namespace gflow::server {
namespace {

std::size_t place_of_status(int status) {
  const auto& all = HttpCounters::kStatuses;
  constexpr int kHundred = 100;
  for (const int wanted : {status, status / kHundred * kHundred}) {
    const auto* const at = std::ranges::lower_bound(all, wanted);
    if (at != all.end() && *at == wanted) return static_cast<std::size_t>(at - all.begin());
  }
  constexpr int kFailure = 500;
  return static_cast<std::size_t>(std::ranges::find(all, kFailure) - all.begin());
}

}  // namespace

void HttpCounters::answered(std::size_t route,
                            int status,
                            std::optional<std::chrono::nanoseconds> took) {
  Route& counted = routes_.at(route);
  add(counted.by_status.at(place_of_status(status)));
  if (!took) return;
  const double seconds = std::chrono::duration<double>(*took).count();
  const auto* const bound = std::ranges::lower_bound(kBounds, seconds);
  add(counted.by_time.at(static_cast<std::size_t>(bound - kBounds.begin())));
  add(counted.nanoseconds, static_cast<std::uint64_t>(took->count()));
}

}  // namespace gflow::server
