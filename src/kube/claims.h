// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "kube/api.h"
#include "kube/scheduler.h"

/// The PersistentVolumeClaims of a pod that has its node, before it is bound to it.
namespace gflow::kube {

/// Writes what has a claim of bind.claims bound: which volume is to be its own, or for which node
/// one is to be made. Asked for again it changes nothing. Errors: what the API server has against
/// it, that one is another by now, too.
[[nodiscard]] Result<void> ask_for_claim(Api& api, const Bind& bind, const ClaimStep& step);

}  // namespace gflow::kube
