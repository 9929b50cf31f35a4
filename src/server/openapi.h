// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "api/operation.h"
#include "server/routes.h"

namespace gflow::server {

/// All routes with what is told of them, and who may use them.
[[nodiscard]] std::vector<api::RouteView> route_views();

}  // namespace gflow::server
