// SPDX-License-Identifier: Apache-2.0
#include "engine/index.h"

/// Where jobs stand in the queue.
namespace gflow::engine {

QueueKey Index::place_of(const Job& job) const { return {job.spec.priority, 0, job.id}; }

bool Index::passes(const Job& /*waiting*/, const Job& /*running*/) const { return false; }

}  // namespace gflow::engine
