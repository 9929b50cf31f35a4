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

/// The head of the queue; empty where nobody tells.
Result<api::QueueView> fetch_queue(client::Client& daemon) {
  auto queue = daemon.queue(api::kUsualForecast);
  if (!queue && queue.error().code == Code::NotFound) return api::QueueView{};  // before 1.0
  return queue;
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

Result<ListedJobs> fetch_screen(client::Client& daemon,
                                const JobQuery& query,
                                long limit,
                                const std::string& user) {
  ListedJobs listed{GF_TRY(fetch_listing(daemon, query, limit))};
  const auto size = static_cast<long>(listed.page.jobs.size());
  if (limit != 0 && (size == limit || -size == limit)) {
    listed.counts = GF_TRY(count_jobs(daemon, query, user));
  }
  const auto waits = [](const api::JobView& job) { return job.status == Status::Queued; };
  if (std::ranges::any_of(listed.page.jobs, waits)) listed.queue = GF_TRY(fetch_queue(daemon));
  return listed;
}

}  // namespace gflow::cli
