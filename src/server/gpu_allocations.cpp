// SPDX-License-Identifier: Apache-2.0
// Allocations that there are: listed, shown, renewed.
#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "api/gpu_resources.h"
#include "server/found_allocation.h"
#include "server/handlers.h"
#include "server/job_tag.h"
#include "server/views.h"

namespace gflow::server {
namespace {

/// The caller's, which may be among very many jobs: looked for some at a time.
struct AllocationListing {
  Exchange exchange;
  JobQuery query;
  api::GpuAllocations found;
};

/// Looks at some more; whether these were all.
bool go_on(AllocationListing& listing) {
  constexpr std::size_t kSeenPerPiece = 1000;
  const Service& service = listing.exchange.service;
  const auto some = service.state().list_some(listing.query, kSeenPerPiece);
  for (const Job* job : some.jobs) {
    listing.query.after = job->id;
    if (!job->spec.allocation) continue;
    listing.found.allocations.push_back(view_of_allocation(listing.exchange.caller, service, *job));
  }
  if (some.more_after) listing.query.after = *some.more_after;
  return !some.more_after;
}

void go_on_listing(const std::shared_ptr<AllocationListing>& listing) {
  Exchange& exchange = listing->exchange;
  while (!go_on(*listing)) {
    if (exchange.fair_work == nullptr) continue;
    return exchange.fair_work->later(exchange.caller, [listing] { go_on_listing(listing); });
  }
  exchange.respond(json_reply_of(std::move(listing->found)));
}

void renew(Exchange exchange, api::GpuRenewal renewal) {
  const auto job = find_allocation(exchange);
  if (!job) return exchange.respond(problem(job.error()));
  const auto ran =
      std::chrono::ceil<std::chrono::seconds>(run_time_of(**job, exchange.service.now().mono));
  // Of the longest there is what ran is over.
  const auto limit = std::min(ran + std::chrono::seconds(renewal.ttl_seconds), api::kLongestTtl);
  JobChanges changes;
  changes.set(&JobSpec::time_limit, limit);
  Service& service = exchange.service;
  service.request(
      engine::event::Update{{(*job)->id}, exchange.caller, std::move(changes)},
      [&service, caller = exchange.caller, id = (*job)->id, respond = std::move(exchange.respond)](
          const Result<std::vector<JobId>>& changed) {
        if (!changed) return respond(problem(changed.error()));
        const Job* its = service.state().find(id);
        if (its == nullptr) return respond(empty_reply());
        respond(short_reply_of(view_of_allocation(caller, service, *its)));
      });
}

}  // namespace

void list_gpu_allocations(Exchange exchange) {
  JobQuery query{.statuses = kNotEnded, .users = {exchange.caller.name}};
  go_on_listing(std::make_shared<AllocationListing>(
      AllocationListing{std::move(exchange), std::move(query), {}}));
}

void show_gpu_allocation(Exchange exchange) {
  const auto job = find_allocation(exchange);
  if (!job) return exchange.respond(problem(job.error()));
  Reply reply = short_reply_of(view_of_allocation(exchange.caller, exchange.service, **job));
  reply.headers.emplace_back("ETag", version_of_job(exchange.caller, exchange.service, **job));
  exchange.respond(std::move(reply));
}

void renew_gpu_allocation(Exchange exchange) {
  read_body<api::GpuRenewal>(std::move(exchange), api::read_gpu_renewal, renew);
}

}  // namespace gflow::server
