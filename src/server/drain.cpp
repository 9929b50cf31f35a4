// SPDX-License-Identifier: Apache-2.0
#include "api/snapshot.h"
#include "server/handlers.h"

namespace gflow::server {

void list_drains(Exchange exchange) {
  exchange.respond(json_reply(api::write_drains(exchange.service.state().drains())));
}

void change_drain(Exchange exchange) {
  auto request = api::read_drain_request(exchange.request.body);
  if (!request) return exchange.respond(problem(request.error()));
  engine::event::Drain event;
  event.what = {request->node, request->gpu, std::move(request->reason), exchange.caller.user.name};
  event.resume = request->resume;
  event.by = exchange.caller.actor();
  exchange.service.request(std::move(event), changed(std::move(exchange.respond)));
}

}  // namespace gflow::server
