// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "core/job.h"
#include "engine/state.h"

namespace gflow::server {

/// From the submission to the start of an attempt of the job, on the time gflow sees pass
/// (Job::lived): a clock that is set changes nothing. Of an attempt of an earlier boot, whose start
/// is known on the calendar alone, what the calendar says, but no more than what passed until the
/// job's end without what it ran.
[[nodiscard]] std::chrono::milliseconds waited(const engine::State& state,
                                               const Job& job,
                                               const Attempt& attempt);

}  // namespace gflow::server
