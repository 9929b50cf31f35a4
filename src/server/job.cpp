// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include <fmt/format.h>

#include "api/json.h"
#include "api/query.h"
#include "base/text.h"
#include "base/translate.h"
#include "server/handlers.h"
#include "server/job_tag.h"
#include "server/views.h"

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

Reply reply_for(const Exchange& exchange, JobId id) {
  const Job* job = exchange.service.state().find(id);
  if (job == nullptr) {
    return problem(Error{Code::NotFound, tr_format("there is no job {}", id.value)});
  }
  Reply reply = json_reply_of(view_for(exchange.caller, exchange.service, *job));
  reply.headers.emplace_back("ETag", tag_of_job(exchange.caller, exchange.service, *job));
  return reply;
}

}  // namespace

void show_job(Exchange exchange) {
  const auto number = parse_number(exchange.segment);
  exchange.respond(
      number ? reply_for(exchange, JobId(*number))
             : problem(Error{Code::NotFound,
                             tr_format("there is no job {}", exchange.segment.substr(0, 30))}));
}

void show_newest_job(Exchange exchange) {
  const auto id = find_newest(exchange);
  exchange.respond(id ? reply_for(exchange, *id) : problem(id.error()));
}

}  // namespace gflow::server
