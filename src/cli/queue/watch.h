// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "cli/queue/job_feed.h"
#include "cli/queue/listing.h"
#include "cli/queue/screen.h"
#include "command/context.h"

namespace gflow::cli {

/// What --interval says, 2 s where it is not given. Errors: Usage.
[[nodiscard]] Result<std::chrono::seconds> interval_of(const Invocation& invocation);

/// How often it is drawn, and with what.
struct View {
  std::chrono::seconds interval;
  /// Lines above the jobs of a terminal, made anew with each drawing; with them the listing is
  /// fetched each interval, too. None where it is empty.
  std::function<std::string(const ListedJobs&, const Viewer&)> panel = {};
};
/// Shows the listing again with every change, until the process is told to end, nobody reads any
/// more, or the daemon is gone for a minute; one that is there and does not answer is waited for,
/// and that is said. On a terminal it is drawn in place, as large as the terminal is then, running
/// times count on every `interval`, `q` ends it, and whatever ends or stops it leaves the terminal
/// as it was; where that cannot be drawn on, each change is a screen below the last; on a pipe it
/// is a block of its own, in JSON a document per line.
[[nodiscard]] Result<int> watch(Context& context,
                                const Listing& listing,
                                const Fetch& fetch,
                                const View& view);

}  // namespace gflow::cli
