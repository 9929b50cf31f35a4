// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "cli/queue/job_feed.h"
#include "cli/queue/listing.h"
#include "command/context.h"

namespace gflow::cli {

/// Shows the listing again with every change, until the process is told to end, nobody reads any
/// more, or the daemon is gone for a minute; one that is there and does not answer is waited for,
/// and that is said. On a terminal it is drawn in place, as large as the terminal is then, running
/// times count on every `interval`, `q` ends it, and whatever ends or stops it leaves the terminal
/// as it was; where that cannot be drawn on, each change is a screen below the last; on a pipe it
/// is a block of its own, in JSON a document per line.
[[nodiscard]] Result<int> watch(Context& context,
                                const Listing& listing,
                                const Fetch& fetch,
                                std::chrono::seconds interval);

}  // namespace gflow::cli
