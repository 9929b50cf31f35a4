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
/// Scheduling. Pending jobs are taken by priority, then in the order the policy gives (order.h),
/// jobs alike as they came. A blocked job keeps its place, against lower priorities at once and
/// against its own after a while: on the nodes expected to be free first (backfill.h). A job behind
/// it starts if it ends before, takes only what is spare, or the blocked one is still patient.
[[nodiscard]] std::vector<Effect> step(State& state, const Event& event, Now now);

}  // namespace gflow::engine
