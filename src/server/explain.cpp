// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "api/explanation.h"
#include "api/queue.h"
#include "server/found_job.h"
#include "server/handlers.h"
#include "server/routes.h"
#include "server/views.h"

namespace gflow::server {
namespace {

/// Whether what is suggested can be done here.
bool changes_jobs(const Service& service) {
  const Route* update = find_route("PATCH", "/api/v1/jobs");
  return update != nullptr && service.serves(*update).has_value();
}

api::Asker asker_of(const Principal& caller, const Service& service, const Job& job) {
  const engine::State& state = service.state();
  api::Asker asker;
  asker.may_change = changes_jobs(service) && may_change(caller, job.id, job.spec.user).has_value();
  asker.max_priority = max_priority(state.policy().priority, caller, job.spec.project);
  return asker;
}

/// The priority of the job it stands behind.
std::optional<int> priority_ahead(const engine::State& state, const api::JobView& job) {
  const auto behind =
      std::ranges::find(job.blockers, BlockerKind::Priority, &api::BlockerView::kind);
  if (behind == job.blockers.end() || behind->jobs.empty()) return std::nullopt;
  const Job* ahead = state.find(behind->jobs.front());
  if (ahead == nullptr) return std::nullopt;
  return ahead->spec.priority;
}

/// The same as the queue says; of a job it leaves out, its begin time.
std::optional<api::ExpectedStart> expected_start_of(const Service& service,
                                                    const api::JobView& job) {
  const Now now = service.now();
  const auto begin = api::begin_of(job, now.wall);
  if (!service.decides() || job.status != Status::Queued) return begin;
  const auto queue = service.state().forecast(api::kUsualForecast, now);
  const auto at = std::ranges::find(queue, job.id, &engine::Expected::job);
  if (at == queue.end() || !at->start) return begin;
  return view_of(*at->start);
}

}  // namespace

void explain_job(Exchange exchange) {
  const auto job = find_job(exchange);
  if (!job) return exchange.respond(problem(job.error()));
  const Service& service = exchange.service;
  api::Asker asker = asker_of(exchange.caller, service, **job);
  api::Explanation explanation;
  explanation.job = view_for(exchange.caller, service, **job);
  explanation.told = service.told(**job);
  // Read off all who hold what it waits for, whoever of them is shown: it is no more than a time.
  explanation.expected_start = expected_start_of(service, view_of(service, **job));
  asker.could_borrow = is_pending(**job) && service.state().could_borrow((*job)->spec);
  asker.ahead = priority_ahead(service.state(), explanation.job);
  explanation.suggestions = api::suggestions_for(explanation.job, asker);
  exchange.respond(json_reply_of(std::move(explanation)));
}

}  // namespace gflow::server
