// SPDX-License-Identifier: Apache-2.0
#include "server/waits.h"

#include <algorithm>

namespace gflow::server {

std::chrono::milliseconds waited(const engine::State& state,
                                 const Job& job,
                                 const Attempt& attempt) {
  using std::chrono::milliseconds;
  constexpr milliseconds kNone{0};
  if (attempt.boot_id == state.boot_id()) {
    return std::max(kNone, state.lived(attempt.started_mono) - job.lived);
  }
  const auto calendar = std::chrono::duration_cast<milliseconds>(attempt.started - job.submitted);
  const auto* ended = std::get_if<Ended>(&job.state);
  const milliseconds most =
      ended == nullptr ? calendar : ended->lived - job.lived - ended->outcome.run_time;
  return std::clamp(calendar, kNone, std::max(kNone, most));
}

}  // namespace gflow::server
