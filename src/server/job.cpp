// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "base/text.h"
#include "base/translate.h"
#include "server/found_job.h"
#include "server/handlers.h"

namespace gflow::server {
namespace {

Result<JobId> find_newest(const Exchange& exchange, std::uint64_t back) {
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

void show_newest_job(Exchange exchange, NewestQuery query) {
  const auto id = find_newest(exchange, query.back);
  if (!id) return exchange.respond(problem(id.error()));
  const Job& job = *exchange.service.state().find(*id);
  exchange.respond(job_reply(exchange.caller, exchange.service, job));
}

}  // namespace gflow::server
