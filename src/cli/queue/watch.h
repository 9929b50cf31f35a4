// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>

#include "cli/queue/listing.h"
#include "command/context.h"

namespace gflow::cli {

using Fetch = std::function<Result<api::JobPage>()>;

/// Shows the listing again with every change, until the process is told to end or the daemon is
/// gone for a minute. On a terminal it is drawn in place and running times count on every
/// `interval`; on a pipe each change is a block of its own, in JSON a document per line.
[[nodiscard]] Result<int> watch(Context& context,
                                const Listing& listing,
                                const Fetch& fetch,
                                std::chrono::seconds interval);

}  // namespace gflow::cli
