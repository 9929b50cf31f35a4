// SPDX-License-Identifier: Apache-2.0
#include "api/json.h"
#include "server/handlers.h"
#include "server/views.h"

namespace gflow::server {

void show_machine(Exchange exchange) {
  exchange.respond(json_reply_of(machine_view_for(exchange.caller, exchange.service)));
}

}  // namespace gflow::server
