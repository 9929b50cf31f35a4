// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "server/routes.h"

namespace gflow::kube {

/// Whether a route only shows what there is, so that it can be answered about a cluster. Errors:
/// Usage, with what does it there.
[[nodiscard]] Result<void> only_shows(const server::Route& route);

}  // namespace gflow::kube
