// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include <fmt/format.h>

#include "api/query.h"
#include "base/text.h"
#include "base/translate.h"
#include "server/found_job.h"
#include "server/handlers.h"

namespace gflow::server {
namespace {

Result<std::uint64_t> read_back(const std::string& query) {
  std::uint64_t back = 0;
  for (const api::Parameter& parameter : GF_TRY(api::read_parameters(query))) {
    back = GF_TRY(api::number_of(parameter));
  }
  return back;
}

Result<JobId> find_newest(const Exchange& exchange) {
  const std::uint64_t back = GF_TRY(read_back(exchange.request.query));
  const User user = GF_TRY(job_owner(exchange.caller));
  if (const auto id = exchange.service.state().newest(user.uid, back)) return *id;
  return fail(
      Code::NotFound,
      back == 0 ? tr_format("{} has submitted no jobs", printable(user.name))
                : tr_format("{} has submitted fewer than {} jobs", printable(user.name), back + 1));
}

}  // namespace

void show_job(Exchange exchange) {
  const auto job = find_job(exchange);
  exchange.respond(job ? job_reply(exchange.caller, exchange.service, **job)
                       : problem(job.error()));
}

void show_newest_job(Exchange exchange) {
  const auto id = find_newest(exchange);
  if (!id) return exchange.respond(problem(id.error()));
  const Job& job = *exchange.service.state().find(*id);
  exchange.respond(job_reply(exchange.caller, exchange.service, job));
}

}  // namespace gflow::server
