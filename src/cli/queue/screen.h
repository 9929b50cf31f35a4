// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/zone.h"
#include "cli/queue/listing.h"

namespace gflow::cli {

/// Who looks at a screen, when, and how large it is.
struct Viewer {
  std::string user;
  WallTime now;
  Zone zone;
  std::size_t columns = 80;  ///< no line is wider
  std::size_t rows = 24;     ///< of the live view
};

/// Whether that listing is shown as below: to a person, who asked for no form of their own.
[[nodiscard]] bool is_screen(const Listing& listing);

/// What it looks at of each job, as in JobQuery::fields.
[[nodiscard]] std::vector<std::string> screen_needs();

/// "13:05:10"
[[nodiscard]] std::string clock_text(WallTime now, const Zone& zone);

/// What gqueue shows on a terminal: what runs first, then what waits: the head of the queue in its
/// order, then the rest by priority; then what has ended, the latest first. Ends with a line of
/// counts, of all that match where `listed.counts` tells them. Jobs keep their order where
/// `listing.sorted`; columns are those of the listing if it names any.
[[nodiscard]] std::string queue_screen(const Listing& listing,
                                       const ListedJobs& listed,
                                       const Viewer& viewer,
                                       const Painter& paint);

/// What a live view has above the jobs besides its counts; of trouble lines of any length.
struct WatchHead {
  std::string trouble;  ///< instead of counts and hint; "" if there is none
  std::string panel;    ///< below them; "" if there is none
};
/// The same for `gqueue -w`, on the rows of the viewer and never more: time, counts and a hint,
/// then as many jobs as there is room for, then how many lines there are more.
[[nodiscard]] std::string watch_screen(const Listing& listing,
                                       const ListedJobs& listed,
                                       const Viewer& viewer,
                                       const WatchHead& head,
                                       const Painter& paint);

}  // namespace gflow::cli
