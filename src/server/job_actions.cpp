// SPDX-License-Identifier: Apache-2.0
#include "api/json.h"
#include "server/found_job.h"
#include "server/handlers.h"
#include "server/job_tag.h"

namespace gflow::server {
void cancel_jobs(Exchange exchange) {
  read_body<api::JobsRequest>(
      std::move(exchange), api::read_jobs_request, [](Exchange known, api::JobsRequest asked) {
        known.service.request(
            engine::event::Cancel{std::move(asked.jobs), known.caller, asked.signal},
            changed(std::move(known.respond)));
      });
}

void cancel_job(Exchange exchange, CancelQuery query) {
  const auto job = find_job(exchange);
  if (!job) return exchange.respond(problem(job.error()));
  const JobId id = (*job)->id;
  request_if_match(exchange,
                   {id},
                   engine::event::Cancel{{id}, exchange.caller, query.signal},
                   changed(exchange.respond));
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
  read_body<api::JobsRequest>(
      std::move(exchange), api::read_jobs_request, [](Exchange known, api::JobsRequest asked) {
        known.service.request(engine::event::Hold{std::move(asked.jobs), known.caller},
                              changed(std::move(known.respond)));
      });
}

void release_jobs(Exchange exchange) {
  read_body<api::JobsRequest>(
      std::move(exchange), api::read_jobs_request, [](Exchange known, api::JobsRequest asked) {
        known.service.request(engine::event::Release{std::move(asked.jobs), known.caller, asked.at},
                              changed(std::move(known.respond)));
      });
}

Service::Answer changed(std::function<void(Reply)> respond) {
  return [respond = std::move(respond)](const Result<std::vector<JobId>>& jobs) {
    respond(jobs ? json_reply(api::write_job_ids(*jobs)) : problem(jobs.error()));
  };
}

}  // namespace gflow::server
