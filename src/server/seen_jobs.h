// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "core/job_query.h"
#include "engine/glance.h"
#include "server/exchange.h"

namespace gflow::server {

/// Shows every job that matches and that the caller knows of, some at a time, others in between,
/// and then goes on with `then`. Jobs that come or change meanwhile may be seen as they were or as
/// they are.
void see_jobs(Exchange exchange,
              JobQuery query,
              std::function<void(const engine::Glance&)> see,
              std::function<void(Exchange)> then);

}  // namespace gflow::server
