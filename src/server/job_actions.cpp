// SPDX-License-Identifier: Apache-2.0
#include "api/json.h"
#include "server/found_job.h"
#include "server/handlers.h"
#include "server/job_tag.h"

namespace gflow::server {
namespace {

/// Has the event that is made of what the body says decided.
template <auto kEventOf>
void act_on_listed(Exchange exchange) {
  read_body<api::JobsRequest>(
      std::move(exchange), api::read_jobs_request, [](Exchange known, api::JobsRequest asked) {
        known.service.request(kEventOf(std::move(asked), known.caller),
                              changed(std::move(known.respond)));
      });
}

/// The same of the job that the path names.
template <typename EventOf>
void act_on_one(const Exchange& exchange, EventOf event_of) {
  const auto job = find_job(exchange);
  if (!job) return exchange.respond(problem(job.error()));
  const JobId id = (*job)->id;
  request_if_match(exchange, {id}, event_of(id), changed(exchange.respond));
}

}  // namespace

void cancel_jobs(Exchange exchange) {
  act_on_listed<[](api::JobsRequest asked, Principal by) {
    return engine::event::Cancel{std::move(asked.jobs), std::move(by), asked.signal};
  }>(std::move(exchange));
}

void cancel_job(Exchange exchange, CancelQuery query) {
  act_on_one(exchange,
             [&](JobId id) { return engine::event::Cancel{{id}, exchange.caller, query.signal}; });
}

void signal_jobs(Exchange exchange) {
  read_body<api::JobsRequest>(
      std::move(exchange), api::read_jobs_request, [](Exchange known, api::JobsRequest asked) {
        if (asked.signal == 0) {
          return known.respond(
              problem(api::refuse("/signal", "has to be given, from 1 to 64").error()));
        }
        known.service.request(
            engine::event::Signal{std::move(asked.jobs), known.caller, asked.signal},
            changed(std::move(known.respond)));
      });
}

void hold_jobs(Exchange exchange) {
  act_on_listed<[](api::JobsRequest asked, Principal by) {
    return engine::event::Hold{std::move(asked.jobs), std::move(by)};
  }>(std::move(exchange));
}

void release_jobs(Exchange exchange) {
  act_on_listed<[](api::JobsRequest asked, Principal by) {
    return engine::event::Release{std::move(asked.jobs), std::move(by), asked.at};
  }>(std::move(exchange));
}

void suspend_jobs(Exchange exchange) {
  act_on_listed<[](api::JobsRequest asked, Principal by) {
    return engine::event::Suspend{std::move(asked.jobs), std::move(by)};
  }>(std::move(exchange));
}

void suspend_job(Exchange exchange) {
  act_on_one(exchange, [&](JobId id) { return engine::event::Suspend{{id}, exchange.caller}; });
}

void resume_jobs(Exchange exchange) {
  act_on_listed<[](api::JobsRequest asked, Principal by) {
    return engine::event::Resume{std::move(asked.jobs), std::move(by)};
  }>(std::move(exchange));
}

void resume_job(Exchange exchange) {
  act_on_one(exchange, [&](JobId id) { return engine::event::Resume{{id}, exchange.caller}; });
}

void move_job(Exchange exchange) {
  read_body<api::MoveRequest>(
      std::move(exchange), api::read_move_request, [](Exchange known, api::MoveRequest asked) {
        act_on_one(known, [&](JobId id) {
          return engine::event::Move{id, asked.gpu, asked.running_only, known.caller};
        });
      });
}

Service::Answer changed(std::function<void(Reply)> respond) {
  return [respond = std::move(respond)](const Result<std::vector<JobId>>& jobs) {
    respond(jobs ? json_reply(api::write_job_ids(*jobs)) : problem(jobs.error()));
  };
}

}  // namespace gflow::server
