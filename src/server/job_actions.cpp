// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "api/json.h"
#include "api/query.h"
#include "core/job_description.h"
#include "server/found_job.h"
#include "server/handlers.h"
#include "server/job_tag.h"

namespace gflow::server {
namespace {

/// What to end a job with in place of SIGTERM; 0: that.
Result<int> read_signal(const std::string& query) {
  std::uint64_t signal = 0;
  for (const api::Parameter& parameter : GF_TRY(api::read_parameters(query))) {
    signal = GF_TRY(api::number_of(parameter));
  }
  const auto most = static_cast<std::uint64_t>(kSignalRange.most);
  if (signal <= most) return static_cast<int>(signal);
  return fail(Code::Usage, fmt::format("signal must be 0 to {}, not {}", most, signal));
}

}  // namespace

void cancel_jobs(Exchange exchange) {
  read_body<api::JobsRequest>(
      std::move(exchange), api::read_jobs_request, [](Exchange known, api::JobsRequest asked) {
        known.service.request(
            engine::event::Cancel{std::move(asked.jobs), known.caller, asked.signal},
            changed(std::move(known.respond)));
      });
}

void cancel_job(Exchange exchange) {
  const auto signal = read_signal(exchange.request.query);
  if (!signal) return exchange.respond(problem(signal.error()));
  const auto job = find_job(exchange);
  if (!job) return exchange.respond(problem(job.error()));
  const JobId id = (*job)->id;
  if (auto same = check_if_match(exchange, {&id, 1}); !same) {
    return exchange.respond(precondition_failed(same.error()));
  }
  exchange.service.request(engine::event::Cancel{{id}, exchange.caller, *signal},
                           changed(std::move(exchange.respond)));
}

void signal_jobs(Exchange exchange) {
  read_body<api::JobsRequest>(
      std::move(exchange), api::read_jobs_request, [](Exchange known, api::JobsRequest asked) {
        if (asked.signal == 0) {
          return known.respond(problem({Code::Usage, "/signal: has to be given, from 1 to 64"}));
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
