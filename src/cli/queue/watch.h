// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "cli/queue/job_feed.h"
#include "cli/queue/listing.h"
#include "command/context.h"

namespace gflow::cli {

/// Shows the listing again with every change, until the process is told to end, nobody reads any
/// more, or the daemon is gone for a minute. On a terminal it is drawn in place, as large as the
/// terminal is then, running times count on every `interval`, `q` ends it, and the terminal is
/// left as it was; on a pipe each change is a block of its own, in JSON a document per line.
[[nodiscard]] Result<int> watch(Context& context,
                                const Listing& listing,
                                const Fetch& fetch,
                                std::chrono::seconds interval);

}  // namespace gflow::cli
