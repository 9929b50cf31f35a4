// SPDX-License-Identifier: Apache-2.0
#include "cli/queue/fetch.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "api/json.h"
#include "cli/queue/fold.h"
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

bool waits(const api::JobView& job) { return job.status == Status::Queued; }

using Take = std::function<bool(std::vector<api::JobView>)>;

/// Pages of a screen, one state after the other.
class ScreenPages {
 public:
  ScreenPages(client::Client& daemon, const JobQuery& query, const Take& take)
      : daemon_(daemon), query_(query), take_(take) {}

  Result<void> all(const api::QueueView& queue) {
    StatusSet running;
    for (const Status status : kActive.list()) {
      if (status != Status::Suspended) running.insert(status);
    }
    GF_CHECK(in_order(running, {}));
    GF_CHECK(in_order({Status::Suspended}, {}));
    GF_CHECK(head(queue));
    GF_CHECK(in_order({Status::Queued}, {JobKey::Priority, true, false}));
    GF_CHECK(in_order({Status::Hold}, {}));
    return ended();
  }

 private:
  /// The same of jobs in these states; nothing if none is asked for.
  [[nodiscard]] std::optional<JobQuery> only(StatusSet statuses) const {
    JobQuery query = query_;
    query.statuses = {};
    for (const Status status : statuses.list()) {
      const bool is_asked_for = query_.statuses.empty() || query_.statuses.contains(status);
      if (is_asked_for) query.statuses.insert(status);
    }
    if (query.statuses.empty()) return std::nullopt;
    return query;
  }

  Result<void> in_order(StatusSet statuses, JobOrder order) {
    auto query = only(statuses);
    if (!query || !goes_on_) return {};
    query->order = order;
    return daemon_.job_pages(*std::move(query), JobQuery::kAll, [this](api::JobPage page) {
      std::erase_if(page.jobs, [this](const api::JobView& job) { return head_.contains(job.id); });
      goes_on_ = take_(std::move(page.jobs));
      return goes_on_;
    });
  }

  Result<void> head(const api::QueueView& queue) {
    auto query = only({Status::Queued});
    if (!query || !goes_on_ || queue.jobs.empty()) return {};
    std::map<JobId, std::size_t> places;
    for (const api::QueuedJob& job : queue.jobs) places.emplace(job.id, places.size());
    for (const auto& [job, place] : places) query->jobs.push_back(job);
    std::vector<api::JobView> jobs =
        GF_TRY(fetch_jobs(daemon_, *std::move(query), JobQuery::kAll)).jobs;
    std::ranges::sort(jobs, {}, [&places](const api::JobView& job) { return places.at(job.id); });
    for (const api::JobView& job : jobs) head_.insert(job.id);
    goes_on_ = take_(std::move(jobs));
    return {};
  }

  /// The daemon has no order of when they ended.
  Result<void> ended() {
    auto query = only(kEnded);
    if (!query || !goes_on_) return {};
    std::vector<api::JobView> jobs =
        GF_TRY(fetch_jobs(daemon_, *std::move(query), JobQuery::kAll)).jobs;
    std::ranges::stable_sort(jobs, std::ranges::greater{}, &api::JobView::ended);
    goes_on_ = take_(std::move(jobs));
    return {};
  }

  client::Client& daemon_;
  const JobQuery& query_;
  const Take& take_;
  std::set<JobId> head_;
  bool goes_on_ = true;
};

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

Result<api::QueueView> fetch_queue(client::Client& daemon, std::size_t most) {
  auto queue = daemon.queue(most);
  if (!queue && queue.error().code == Code::NotFound) return api::QueueView{};  // before 1.0
  return queue;
}

Result<void> screen_pages(client::Client& daemon,
                          const JobQuery& query,
                          const Listing& listing,
                          const api::QueueView& queue,
                          const Take& take) {
  if (listing.sorted) {
    return daemon.job_pages(
        query, JobQuery::kAll, [&take](api::JobPage page) { return take(std::move(page.jobs)); });
  }
  return ScreenPages(daemon, query, take).all(queue);
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
  if (std::ranges::any_of(listed.page.jobs, waits)) listed.queue = GF_TRY(fetch_queue(daemon));
  return listed;
}

Result<ListedJobs> fetch_first_page(client::Client& daemon, JobQuery query) {
  query.most = api::kMaxJobsOnPage;
  ListedJobs listed{GF_TRY(daemon.jobs(query))};
  if (std::ranges::any_of(listed.page.jobs, waits)) listed.queue = GF_TRY(fetch_queue(daemon));
  return listed;
}

Result<ListedJobs> fetch_one_screen(client::Client& daemon,
                                    const JobQuery& query,
                                    const Listing& listing,
                                    const std::string& user) {
  // No terminal has more rows; an array of more tasks is shown as the first of them.
  constexpr std::size_t kRows = 250;
  constexpr std::size_t kMostRead = 5000;
  ListedJobs listed = GF_TRY(fetch_first_page(daemon, query));
  if (std::exchange(listed.page.next, {}).empty()) return listed;
  listed.page.next_after.reset();
  listed.queue = GF_TRY(fetch_queue(daemon));
  std::vector<api::JobView>& jobs = listed.page.jobs;
  jobs.clear();
  ArrayFolder folder(listing.folded ? Folding::Waiting : Folding::None);
  std::size_t rows = 0;
  const auto take = [&](std::vector<api::JobView> more) {
    for (api::JobView& job : more) {
      folder.add(std::make_shared<const api::JobView>(job));
      jobs.push_back(std::move(job));
    }
    rows += folder.take_complete().size();
    return rows < kRows && jobs.size() < kMostRead;
  };
  GF_CHECK(screen_pages(daemon, query, listing, listed.queue, take));
  listed.counts = GF_TRY(count_jobs(daemon, query, user));
  return listed;
}

}  // namespace gflow::cli
