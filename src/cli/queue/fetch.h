// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

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

/// The head of the queue, of so many jobs; empty where nobody tells.
[[nodiscard]] Result<api::QueueView> fetch_queue(client::Client& daemon,
                                                 std::size_t most = api::kUsualForecast);

/// Gives the jobs of a query to `take` in the order of a screen, a page at a time, until that says
/// false: what runs, what is suspended, the head of the queue in its order, the others that wait by
/// priority, what is held, what has ended, the latest first; or as the listing is sorted. One that
/// starts or is released meanwhile may be passed over. Errors: the daemon's.
[[nodiscard]] Result<void> screen_pages(client::Client& daemon,
                                        const JobQuery& query,
                                        const Listing& listing,
                                        const api::QueueView& queue,
                                        const std::function<bool(std::vector<api::JobView>)>& take);

/// The first page, with the queue if one of its jobs may be in it. These are all if it has no next.
[[nodiscard]] Result<ListedJobs> fetch_first_page(client::Client& daemon, JobQuery query);

/// What the live view has room for, on the largest terminal: all, where that is a page; else the
/// first jobs in the order of the listing, and how many there are in all.
[[nodiscard]] Result<ListedJobs> fetch_one_screen(client::Client& daemon,
                                                  const JobQuery& query,
                                                  const Listing& listing,
                                                  const std::string& user);

}  // namespace gflow::cli
