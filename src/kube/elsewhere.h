// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "server/routes.h"

namespace gflow::kube {

/// Whether what a route is for is done about a cluster: to show what there is, to submit and to
/// cancel. Errors: Usage, with what does it there.
[[nodiscard]] Result<void> is_done_here(const server::Route& route);

}  // namespace gflow::kube
