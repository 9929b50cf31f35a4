// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "api/job_page.h"
#include "api/json.h"
#include "server/handlers.h"
#include "server/job_cursor.h"
#include "server/next_link.h"
#include "server/top_jobs.h"
#include "server/views.h"

namespace gflow::server {
namespace {

// A page ends early rather than grow over this. A value takes two bytes at least, so that a page
// has fewer of them than readers take (api::kMaxValues).
constexpr std::size_t kMaxPageBytes = std::size_t{1} << 20;
// What is done of a page before others have their turn: jobs shown, and jobs looked at for that.
constexpr std::size_t kJobsPerPiece = 8;
// One with many dependencies is as much work as many jobs: so many more are one.
constexpr std::size_t kDependenciesPerJob = 64;
constexpr std::size_t kSeenPerPiece = 1000;

/// How much of a piece a job is, in jobs.
std::size_t jobs_worth(const Job& job) {
  return 1 + job.spec.dependencies.jobs.size() / kDependenciesPerJob;
}

/// A page being written, some jobs at a time. What changes meanwhile is news after its revision.
struct Listing {
  Listing(Exchange from, JobQuery asked)
      : exchange(std::move(from)),
        query(std::move(asked)),
        left(query.most),
        revision(exchange.service.state().revision()),
        page(kMaxPageBytes, query.fields) {
    query.most = kJobsPerPiece;
  }

  Exchange exchange;
  JobQuery query;  ///< for the next piece
  std::size_t left;
  std::uint64_t revision;
  api::JobPageWriter page;
};

/// Takes some more jobs on the page; whether it is complete.
bool go_on(Listing& listing) {
  const auto found = listing.exchange.service.state().list_some(listing.query, kSeenPerPiece);
  std::size_t weight = 0;
  for (const Job* job : found.jobs) {
    weight += jobs_worth(*job);
    if (weight > kJobsPerPiece && job != found.jobs.front()) return false;  // the next piece has it
    const bool fits =
        listing.left > 0 &&
        listing.page.add(view_for(listing.exchange.caller, listing.exchange.service, *job));
    if (!fits) {
      listing.page.more();
      return true;
    }
    --listing.left;
    listing.query.after = job->id;
  }
  if (found.more_after) listing.query.after = *found.more_after;
  return !found.more_after;
}

/// A page in another order than by id: first those it may hold are found, and one more, which tells
/// that there are more; then they are shown; both some at a time. By what they are sorted and not
/// by how many they are it is known where the next page begins, so that jobs which come and end
/// meanwhile move none from a page to another.
struct SortedListing {
  SortedListing(Exchange from, JobQuery asked, JobCursor begin)
      : exchange(std::move(from)),
        query(std::move(asked)),
        most(query.most),
        as_of(moment(exchange.service, begin.as_of)),
        goes_by_index(is_faster_by_index(exchange.service.state(), query)),
        cursor(std::move(begin)),
        top(query.order, most + 1, after(), query.sight),
        revision(exchange.service.state().revision()),
        page(kMaxPageBytes, query.fields) {
    if (goes_by_index && after()) {
      place = {static_cast<int>(cursor.place.number), cursor.place.id};
    }
    query.most = goes_by_index ? most + 1 : kSeenPerPiece;
  }

  static Moment moment(const Service& service, std::chrono::milliseconds lived) {
    const MonoTime now = service.now().mono;
    return {now - (service.state().lived(now) - lived), lived};
  }
  /// By the index the first that match are found at once, where they are not too few of all; else
  /// it is faster to look at those there are.
  static bool is_faster_by_index(const engine::State& state, const JobQuery& query) {
    if (query.order.key != JobKey::Priority) return false;
    const auto candidates = static_cast<double>(state.seen_for(query));
    return candidates * candidates >
           4.0 * static_cast<double>(query.most) * static_cast<double>(state.size());
  }
  [[nodiscard]] std::optional<SortPlace> after() const {
    return cursor.place.id.is_set() ? std::optional(cursor.place) : std::nullopt;
  }

  Exchange exchange;
  JobQuery query;  ///< for the next piece
  std::size_t most;
  Moment as_of;
  bool goes_by_index;
  JobCursor cursor;
  TopJobs top;
  std::optional<engine::State::PriorityPlace> place;  ///< where the index was left
  std::vector<SortPlace> found;
  bool has_found = false;  ///< them all
  std::size_t shown = 0;
  std::uint64_t revision;
  api::JobPageWriter page;
};

/// Goes some further along the index; whether it has found enough, or come to its end.
bool walk_some(SortedListing& listing) {
  listing.place = listing.exchange.service.state().glance_by_priority(
      listing.query, listing.place, kSeenPerPiece, [&listing](const engine::Glance& job) {
        listing.found.push_back({job.spec->priority, "", job.id});
      });
  if (listing.found.size() > listing.most) return true;
  listing.query.most = listing.most + 1 - listing.found.size();
  return !listing.place;
}

/// Looks at some more jobs; whether these were all.
bool select_some(SortedListing& listing) {
  if (listing.goes_by_index) return walk_some(listing);
  const auto more_after = listing.exchange.service.state().glance_some(
      listing.query, kSeenPerPiece, [&listing](const engine::Glance& job) {
        listing.top.add(job, listing.as_of);
      });
  if (more_after) {
    listing.query.after = *more_after;
    return false;
  }
  listing.found = listing.top.take();
  return true;
}

/// The next page begins behind the last that was shown.
void end_page(SortedListing& listing) {
  listing.cursor.place = listing.found.at(listing.shown - 1);
  listing.page.more(write_job_cursor(listing.cursor));
}

/// Takes some more of the selected jobs on the page; whether it is complete.
bool show_some(SortedListing& listing) {
  const Service& service = listing.exchange.service;
  const std::size_t wanted = std::min(listing.found.size(), listing.most);
  for (std::size_t weight = 0; listing.shown < wanted && weight < kJobsPerPiece; ++listing.shown) {
    const Job* job = service.state().find(listing.found[listing.shown].id);
    if (job == nullptr) continue;  // forgotten meanwhile
    weight += jobs_worth(*job);
    if (!listing.page.add(view_for(listing.exchange.caller, service, *job))) {
      end_page(listing);
      return true;
    }
  }
  if (listing.shown < wanted) return false;
  if (listing.found.size() > wanted) end_page(listing);
  return true;
}

/// A piece of either; whether the page is complete.
bool go_on(SortedListing& listing) {
  if (listing.has_found) return show_some(listing);
  listing.has_found = select_some(listing);
  return false;
}

/// Piece by piece, others in between, until the page is complete.
template <typename SomeListing>
void go_on_listing(const std::shared_ptr<SomeListing>& listing) {
  Exchange& exchange = listing->exchange;
  while (!go_on(*listing)) {
    if (exchange.fair_work == nullptr) continue;
    return exchange.fair_work->later(exchange.caller, [listing] { go_on_listing(listing); });
  }
  Reply reply = json_reply(listing->page.finish(listing->revision));
  link_next(reply, exchange.request, listing->page.next());
  exchange.respond(std::move(reply));
}

/// Begins where the page before ended, or at the first of them all.
Result<JobCursor> begin_of(const JobQuery& query, std::chrono::milliseconds now) {
  if (query.cursor.empty()) return JobCursor{query.order.key, {}, now};
  return read_job_cursor(query.cursor, query.order.key);
}

}  // namespace

void list_jobs(Exchange exchange, JobQuery query) {
  query.sight = sight_of(exchange.caller);
  if (query.order.key == JobKey::Id) {
    return go_on_listing(std::make_shared<Listing>(std::move(exchange), std::move(query)));
  }
  auto begin = begin_of(query, exchange.service.state().lived(exchange.service.now().mono));
  if (!begin) return exchange.respond(problem(begin.error()));
  go_on_listing(
      std::make_shared<SortedListing>(std::move(exchange), std::move(query), *std::move(begin)));
}

}  // namespace gflow::server
