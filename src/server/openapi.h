// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "api/operation.h"
#include "server/routes.h"

namespace gflow::server {

/// All routes with what is told of them, and who may use them.
[[nodiscard]] std::vector<api::RouteView> route_views();

/// Errors: Usage for a query parameter the route does not have, with the nearest that it has, and
/// for an Idempotency-Key that can be none.
[[nodiscard]] Result<void> check_parameters(const Route& route, const Request& request);

}  // namespace gflow::server
