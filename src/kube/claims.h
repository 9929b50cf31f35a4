// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "kube/api.h"
#include "kube/scheduler.h"

/// The PersistentVolumeClaims of a pod that has its node, before it is bound to it.
namespace gflow::kube {

/// Writes what has them bound: which volume is to be a claim's, or for which node one is to be
/// made. Errors: what the API server has against it, that one is another by now, too.
[[nodiscard]] Result<void> ask_for_claims(Api& api, const Bind& bind);

/// Whether all of them are bound. Errors: that this will not come: one is gone, or its volume
/// cannot be made for the node.
[[nodiscard]] Result<bool> see_claims(Api& api, const Bind& bind);

}  // namespace gflow::kube
