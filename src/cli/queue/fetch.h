// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/types.h"
#include "client/client.h"
#include "core/job_query.h"

namespace gflow::cli {

/// The jobs a query is for, in its order: the first `limit`, the last ones if it is negative, all
/// for 0. Sorted and cut by the daemon where it can be, else here. Errors: the daemon's.
[[nodiscard]] Result<api::JobPage> fetch_listing(client::Client& daemon,
                                                 JobQuery query,
                                                 long limit);

}  // namespace gflow::cli
