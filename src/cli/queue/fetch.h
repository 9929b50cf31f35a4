// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "api/types.h"
#include "cli/queue/listing.h"
#include "client/client.h"
#include "core/job_query.h"

namespace gflow::cli {

/// The jobs a query is for, in its order: the first `limit`, the last ones if it is negative, all
/// for 0. Sorted and cut by the daemon where it can be, else here. Errors: the daemon's.
[[nodiscard]] Result<api::JobPage> fetch_listing(client::Client& daemon,
                                                 JobQuery query,
                                                 long limit);

/// The same with the queue, if one of them may be in it (without, where nobody tells), and with how
/// many match in all, if there may be more. `user`: whose are their own.
[[nodiscard]] Result<ListedJobs> fetch_screen(client::Client& daemon,
                                              const JobQuery& query,
                                              long limit,
                                              const std::string& user);

}  // namespace gflow::cli
