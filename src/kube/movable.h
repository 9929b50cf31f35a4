// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kube/batch_job.h"
#include "kube/objects.h"

/// Pods that start elsewhere once they are evicted.
namespace gflow::kube {

/// Whether one that runs is made anew by its controller once it is evicted, and nothing of its own
/// keeps it where it is, data on its node, too; whether other pods do, the scheduler knows. `job`
/// is that of the pod where gbatch made it, else null: where its eviction would be a failure of the
/// Job, it does not move.
[[nodiscard]] bool may_move(const Pod& pod, const BatchJob* job);

}  // namespace gflow::kube
