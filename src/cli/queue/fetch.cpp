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

/// The first jobs in the order of the query, as many as the daemon can put on one page. Nothing if
/// they do not fit there.
Result<std::optional<api::JobPage>> fetch_cut(client::Client& daemon,
                                              JobQuery query,
                                              std::size_t most) {
  if (query.order.key == JobKey::Id) return GF_TRY(fetch_jobs(daemon, query, most));
  if (most > api::kMaxJobsOnPage) return std::nullopt;
  query.most = most;
  api::JobPage page = GF_TRY(daemon.jobs(query));
  if (page.next_after && page.jobs.size() < most) return std::nullopt;
  return page;
}

Result<api::JobPage> fetch_and_sort(client::Client& daemon, JobQuery query) {
  const JobOrder order = std::exchange(query.order, {});
  if (!query.fields.empty()) query.fields.emplace_back(field_of(order.key));
  api::JobPage page = GF_TRY(fetch_jobs(daemon, query, std::numeric_limits<std::size_t>::max()));
  sort_jobs(page.jobs, {order.key, order.descending, false});
  return page;
}

}  // namespace

Result<api::JobPage> fetch_listing(client::Client& daemon, JobQuery query, long limit) {
  std::optional<api::JobPage> page;
  if (limit != 0) {
    query.order.reversed = limit < 0;
    // In unsigned numbers, where the lowest number has an opposite.
    const auto wanted = static_cast<std::size_t>(limit);
    page = GF_TRY(fetch_cut(daemon, query, limit < 0 ? std::size_t{0} - wanted : wanted));
    if (page && limit < 0) std::ranges::reverse(page->jobs);
  }
  if (!page) {
    page = GF_TRY(fetch_and_sort(daemon, query));
    limit_jobs(page->jobs, limit);
  }
  page->next_after.reset();
  return *std::move(page);
}

}  // namespace gflow::cli
