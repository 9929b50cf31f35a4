// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/job.h"
#include "placement/ledger.h"

namespace gflow::kube {

/// What is not enough of on a node for a request, most telling first, in the words of
/// kube-scheduler: "Insufficient nvidia.com/gpu"; "" if all is.
[[nodiscard]] std::string lack(const placement::Shortfall& shortfall,
                               const gflow::Request& request);

}  // namespace gflow::kube
