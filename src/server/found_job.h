// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/exchange.h"

namespace gflow::server {

/// The job a request names by {id}. Errors: NotFound, also for one the caller does not know of.
[[nodiscard]] Result<const Job*> find_job(const Exchange& exchange);
/// A job as this caller may see it, with its entity tag.
[[nodiscard]] Reply job_reply(const Principal& caller, const Service& service, const Job& job);

}  // namespace gflow::server
