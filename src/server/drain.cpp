// SPDX-License-Identifier: Apache-2.0
#include "api/snapshot.h"
#include "server/handlers.h"
#include "server/views.h"

namespace gflow::server {

void list_drains(Exchange exchange) {
  exchange.respond(json_reply(api::write_drains(drain_views(exchange.service.state()))));
}

void change_drain(Exchange exchange) {
  read_body<api::DrainRequest>(
      std::move(exchange), api::read_drain_request, [](Exchange known, api::DrainRequest request) {
        engine::event::Drain event;
        event.what = {request.node,
                      request.gpu,
                      std::move(request.reason),
                      known.caller.name,
                      std::move(request.uuid)};
        event.resume = request.resume;
        event.by = known.caller;
        known.service.request(std::move(event), changed(std::move(known.respond)));
      });
}

}  // namespace gflow::server
