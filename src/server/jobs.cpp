// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "api/job_page.h"
#include "api/json.h"
#include "base/text.h"
#include "base/translate.h"
#include "base/word_hash.h"
#include "server/handlers.h"
#include "server/submission.h"
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
// Nobody reads the reasons of thousands of new jobs, and finding them takes the loop's time.
constexpr std::size_t kMaxReasons = 100;

/// How much of a piece a job is, in jobs.
std::size_t weight_of(const Job& job) {
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
    weight += weight_of(*job);
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

/// A page in another order than by id: first all that match are looked at, then those it holds are
/// shown, both some at a time.
struct SortedListing {
  SortedListing(Exchange from, JobQuery asked)
      : exchange(std::move(from)),
        query(std::move(asked)),
        top(query.order, query.most),
        revision(exchange.service.state().revision()),
        page(kMaxPageBytes, query.fields) {
    query.most = kSeenPerPiece;
  }

  Exchange exchange;
  JobQuery query;  ///< for the next piece
  TopJobs top;
  std::optional<std::vector<JobId>> selected;
  std::size_t shown = 0;
  std::uint64_t revision;
  api::JobPageWriter page;
};

/// Looks at some more jobs; whether these were all.
bool select_some(SortedListing& listing) {
  const Service& service = listing.exchange.service;
  const auto more_after = service.state().glance_some(
      listing.query, kSeenPerPiece, [&listing, now = service.now()](const engine::Glance& job) {
        listing.top.add(job, now);
      });
  if (more_after) listing.query.after = *more_after;
  return !more_after;
}

/// Takes some more of the selected jobs on the page; whether it is complete.
bool show_some(SortedListing& listing) {
  const Service& service = listing.exchange.service;
  const std::vector<JobId>& ids = *listing.selected;
  for (std::size_t weight = 0; listing.shown < ids.size() && weight < kJobsPerPiece;
       ++listing.shown) {
    const Job* job = service.state().find(ids[listing.shown]);
    if (job == nullptr) continue;  // forgotten meanwhile
    weight += weight_of(*job);
    if (!listing.page.add(view_for(listing.exchange.caller, service, *job))) {
      listing.page.more();
      return true;
    }
  }
  return listing.shown == ids.size();
}

/// A piece of either; whether the page is complete.
bool go_on(SortedListing& listing) {
  if (listing.selected) return show_some(listing);
  if (select_some(listing)) listing.selected = listing.top.take();
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
  exchange.respond(json_reply(listing->page.finish(listing->revision)));
}

/// What earlier runs of the same command say about the memory this one asks for.
std::string advice_for(const engine::State& state, const JobSpec& spec) {
  const gflow::Request& request = spec.request;
  if (request.gpus == 0) return {};
  const auto peak = state.peak(spec.user.uid, spec.command);
  if (!peak || (request.gpu_memory > Memory{} && request.gpu_memory >= peak->most)) return {};
  // A tenth more than was ever seen, in whole MiB.
  const Memory enough{(peak->most.bytes + peak->most.bytes / 10 + (1 << 20) - 1) >> 20 << 20};
  const std::string seen = tr_count(static_cast<std::uint64_t>(peak->runs),
                                    "{} earlier run of '{}' used up to {} of GPU memory",
                                    "{} earlier runs of '{}' used up to {} of GPU memory",
                                    peak->runs,
                                    printable(engine::program_of(spec.command)),
                                    memory_text(peak->most));
  if (request.gpu_memory > Memory{}) {
    return tr_format("{}, and this one asks for {}; --gpu-memory {} would be enough",
                     seen,
                     memory_text(request.gpu_memory),
                     memory_text(enough));
  }
  return tr_format(
      "{}; with --gpu-memory {} it starts only where that is free", seen, memory_text(enough));
}

api::SubmitAnswer answer_of(const Service& service, const std::vector<JobId>& jobs) {
  api::SubmitAnswer answer;
  for (const JobId id : jobs) {
    api::SubmitAnswer::Item item;
    item.id = id;
    if (const Job* job = service.state().find(id)) {
      item.name = job->spec.name;
      item.status = status_of(*job);
      if (answer.items.size() < kMaxReasons) {
        item.reason = reason_text(service.state().blockers(id, service.now()));
        item.advice = advice_for(service.state(), job->spec);
      }
    }
    answer.items.push_back(std::move(item));
  }
  return answer;
}

Reply submitted(const Service& service, const Result<std::vector<JobId>>& jobs) {
  if (!jobs) return problem(jobs.error());
  Reply reply = json_reply_of(answer_of(service, *jobs));
  reply.status = 201;
  if (!jobs->empty()) {
    reply.headers.emplace_back("Location", fmt::format("/api/v1/jobs/{}", jobs->front().value));
  }
  return reply;
}

Result<api::SubmitRequest> read_submission(std::string_view body) {
  auto submission = api::read_submit_request(body);
  if (submission) submission->digest = digest_of(body);
  return submission;
}

/// An allocation runs what gflowd gives it, which is not on the wire.
Result<void> check_no_allocation(const api::SubmitRequest& submission) {
  for (std::size_t i = 0; i < submission.items.size(); ++i) {
    if (!submission.items[i].spec.allocation) continue;
    return fail(Code::Usage,
                tr_format("/items/{}/spec/allocation: a job is none; POST /api/v1/gpu/allocate and "
                          "'galloc' make allocations",
                          i));
  }
  return {};
}

/// What connects as root may pass on what others ask, and what it runs is root's.
Result<void> check_not_root_over_tcp(const Principal& caller) {
  if (caller.known_by == KnownBy::Peer || caller.uid != 0U) return {};
  return fail(Code::Permission,
              tr("root submits no jobs over TCP; use the socket, as gbatch does"));
}

void submit(Exchange exchange, api::SubmitRequest submission) {
  if (auto may = check_not_root_over_tcp(exchange.caller); !may) {
    return exchange.respond(problem(may.error()));
  }
  if (auto checked = check_no_allocation(submission); !checked) {
    return exchange.respond(problem(checked.error()));
  }
  submission.idempotency_key = exchange.request.idempotency_key;
  const auto owner = job_owner(exchange.caller);
  if (!owner) return exchange.respond(problem(owner.error()));
  for (auto& item : submission.items) item.spec.user = *owner;
  exchange.service.submit(
      std::move(submission),
      exchange.caller,
      [&service = exchange.service, respond = std::move(exchange.respond)](
          const Result<std::vector<JobId>>& jobs) { respond(submitted(service, jobs)); });
}

/// As submit(), up to where the jobs would be there.
void check(Exchange exchange, api::SubmitRequest submission) {
  const auto owner = job_owner(exchange.caller);
  if (!owner) return exchange.respond(problem(owner.error()));
  for (auto& item : submission.items) item.spec.user = *owner;
  const Submission asked = submission_of(std::move(submission.items), exchange.caller);
  const auto checked = exchange.service.state().check(asked.event);
  exchange.respond(checked ? json_reply(api::write_job_ids({})) : problem(checked.error()));
}

}  // namespace

void list_jobs(Exchange exchange) {
  const auto query = api::read_query(exchange.request.query);
  if (!query) return exchange.respond(problem(query.error()));
  if (query->order.key != JobKey::Id) {
    return go_on_listing(std::make_shared<SortedListing>(std::move(exchange), *query));
  }
  go_on_listing(std::make_shared<Listing>(std::move(exchange), *query));
}

void submit_jobs(Exchange exchange) {
  read_body<api::SubmitRequest>(std::move(exchange), read_submission, submit);
}

void check_jobs(Exchange exchange) {
  read_body<api::SubmitRequest>(std::move(exchange), api::read_submit_request, check);
}

}  // namespace gflow::server
