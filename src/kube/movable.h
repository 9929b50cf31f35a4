// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kube/batch_job.h"
#include "kube/objects.h"

/// Pods that start elsewhere once they are evicted.
namespace gflow::kube {

/// Whether one that runs is made anew by what made it, which minds that less than its owner does,
/// and may go to every node that admits it: to be shown, nothing is evicted by it. One of a Job
/// that failed with it would not be; `job` is that of the pod where gbatch made it, else null.
[[nodiscard]] bool may_move(const Pod& pod, const BatchJob* job);

}  // namespace gflow::kube
