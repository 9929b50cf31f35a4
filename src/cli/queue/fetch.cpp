// SPDX-License-Identifier: Apache-2.0
#include "cli/queue/fetch.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

#include "api/json.h"
#include "cli/queue/listing.h"
#include "cli/selection.h"

namespace gflow::cli {

namespace {

/// All of them at once: sorted by whoever has to have them all anyway.
Result<api::JobPage> fetch_and_sort(client::Client& daemon, JobQuery query) {
  const JobOrder order = std::exchange(query.order, {});
  if (!query.fields.empty()) query.fields.emplace_back(field_of(order.key));
  api::JobPage page = GF_TRY(fetch_jobs(daemon, query, std::numeric_limits<std::size_t>::max()));
  sort_jobs(page.jobs, {order.key, order.descending, false});
  return page;
}

}  // namespace

Result<api::JobPage> fetch_listing(client::Client& daemon, JobQuery query, long limit) {
  api::JobPage page;
  if (limit == 0) {
    page = GF_TRY(fetch_and_sort(daemon, std::move(query)));
  } else {
    query.order.reversed = limit < 0;
    // In unsigned numbers, where the lowest number has an opposite.
    const auto wanted = static_cast<std::size_t>(limit);
    page =
        GF_TRY(fetch_jobs(daemon, std::move(query), limit < 0 ? std::size_t{0} - wanted : wanted));
    if (limit < 0) std::ranges::reverse(page.jobs);
  }
  page.next.clear();
  page.next_after.reset();
  return page;
}

Result<ListedJobs> fetch_with_queue(client::Client& daemon, const JobQuery& query, long limit) {
  ListedJobs listed{GF_TRY(fetch_listing(daemon, query, limit))};
  const auto waits = [](const api::JobView& job) { return job.status == Status::Queued; };
  if (std::ranges::none_of(listed.page.jobs, waits)) return listed;
  auto queue = daemon.queue(api::kUsualForecast);
  if (queue) {
    listed.queue = *std::move(queue);
  } else if (queue.error().code != Code::NotFound) {  // one before 1.0 does not know it
    return std::unexpected(queue.error());
  }
  return listed;
}

}  // namespace gflow::cli
