// SPDX-License-Identifier: Apache-2.0
#include "api/json.h"
#include "base/translate.h"
#include "server/handlers.h"

namespace gflow::server {
namespace {

// Under the minute after which clients and whatever stands between give up on a silent connection.
constexpr std::chrono::seconds kMaxWait{55};

}  // namespace

void wait_for_change(Exchange exchange, ChangesQuery query) {
  const Job* job = query.job ? exchange.service.state().find(*query.job) : nullptr;
  if (query.job && (job == nullptr || !knows_of(exchange.caller, job->spec.user))) {
    return exchange.respond(
        problem({Code::NotFound, tr_format("there is no job {}", query.job->value)}));
  }
  const std::uint64_t revision = exchange.service.state().revision();
  if (query.revision > revision) {  // of a daemon before this one: what changed since is not known
    return exchange.respond(json_reply(api::write_revision(revision)));
  }
  auto wait = exchange.service.on_change(
      query.revision,
      query.job,
      kMaxWait,
      [&service = exchange.service, respond = std::move(exchange.respond)] {
        respond(json_reply(api::write_revision(service.state().revision())));
      });
  if (exchange.keep) exchange.keep(std::move(wait));
}

}  // namespace gflow::server
