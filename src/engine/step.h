// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/effect.h"
#include "engine/event.h"
#include "engine/state.h"

namespace gflow::engine {

/// The one deciding function: what happened becomes what is to be done. Deterministic: the same
/// state, event and time give the same effects, byte for byte. Never fails: a request that cannot
/// be met is an Answer with the error, and changes nothing.
///
/// Scheduling. Pending jobs are taken by priority, then by age (id). The first that does not fit
/// keeps its place: a job behind it starts only if it cannot delay it, which is so when
///  - it ends, by its time limit, before the blocked job could start at the earliest, or
///  - what it takes is more than the blocked job will need then (EASY backfill, Lifka 1995), or
///  - nothing can be proven because running jobs have no time limit, and the blocked job has not
///    been kept waiting by such guesses for longer than Policy::backfill_patience.
[[nodiscard]] std::vector<Effect> step(State& state, const Event& event, Now now);

}  // namespace gflow::engine
