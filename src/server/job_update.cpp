// SPDX-License-Identifier: Apache-2.0
#include "api/json.h"
#include "base/translate.h"
#include "server/found_job.h"
#include "server/handlers.h"
#include "server/job_tag.h"

namespace gflow::server {
namespace {

/// Whoever uses what an allocation holds is not told to stop and started again, as a job is.
Result<void> check_allocations(const Exchange& exchange, const api::UpdateRequest& update) {
  const JobChanges& changes = update.changes;
  const bool may_move = changes.has(&JobSpec::preemption) || changes.has(&JobSpec::requeue) ||
                        changes.has(&JobSpec::max_retries);
  if (!may_move) return {};
  for (const JobId id : update.jobs) {
    const Job* job = exchange.service.state().find(id);
    if (job == nullptr || !job->spec.allocation) continue;
    if (!knows_of(exchange.caller, job->spec.user)) continue;  // said by whoever changes it
    return fail(
        Code::WrongState,
        tr_format("job {} is an allocation: it can be neither preempted nor run again", id.value));
  }
  return {};
}

/// Has it decided, if the jobs are as If-Match says; else answers why not.
void update(Exchange exchange, api::UpdateRequest update, Service::Answer answer) {
  if (auto may = check_allocations(exchange, update); !may) {
    return exchange.respond(problem(may.error()));
  }
  request_if_match(exchange,
                   update.jobs,
                   engine::event::Update{update.jobs, exchange.caller, std::move(update.changes)},
                   std::move(answer));
}

void update_many(Exchange exchange, api::UpdateRequest asked) {
  Service::Answer answer = changed(exchange.respond);
  update(std::move(exchange), std::move(asked), std::move(answer));
}

/// Answers with the job as it is then, and its tag for the next change.
void update_one(Exchange exchange, JobChanges changes) {
  const auto job = find_job(exchange);
  if (!job) return exchange.respond(problem(job.error()));
  const JobId id = (*job)->id;
  Service::Answer answer = [&service = exchange.service,
                            caller = exchange.caller,
                            respond = exchange.respond,
                            id](const Result<std::vector<JobId>>& changed) {
    if (!changed) return respond(problem(changed.error()));
    const Job* its = service.state().find(id);
    respond(its == nullptr ? empty_reply() : job_reply(caller, service, *its));
  };
  update(std::move(exchange), {{id}, std::move(changes)}, std::move(answer));
}

}  // namespace

void update_jobs(Exchange exchange) {
  read_body<api::UpdateRequest>(std::move(exchange), api::read_update_request, update_many);
}

void update_job(Exchange exchange) {
  read_body<JobChanges>(std::move(exchange), api::read_job_update, update_one);
}

}  // namespace gflow::server
