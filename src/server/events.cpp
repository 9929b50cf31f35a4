// SPDX-License-Identifier: Apache-2.0
#include "api/event.h"
#include "server/event_journal.h"
#include "server/handlers.h"

namespace gflow::server {

/// There is nothing in an event that not all may know who know of the job: one text of each is for
/// all, but for those who are shown less of others' jobs.
void listen_to_events(Exchange exchange, api::EventQuery query) {
  if (auto begun = api::begin_behind(query, exchange.request.last_event_id); !begun) {
    return exchange.respond(problem(begun.error()));
  }
  query.filter.sight = sight_of(exchange.caller);
  const bool is_endless = query.follow;
  auto body = exchange.service.events().listen(std::move(query));
  if (!body) {
    return exchange.respond({api::kEventsGone,
                             api::write_events_gone(body.error(), body.error().after),
                             "application/problem+json"});
  }
  Reply reply{200, {}, "text/event-stream", {}};
  // What stands between is not to collect them.
  reply.headers = {{"X-Accel-Buffering", "no"}};
  reply.streamed = Streamed{.body = std::move(*body),
                            .is_endless = is_endless,
                            .heartbeat = is_endless ? ":\n\n" : "",
                            .is_work = true};
  exchange.respond(std::move(reply));
}

}  // namespace gflow::server
