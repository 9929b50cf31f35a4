// SPDX-License-Identifier: Apache-2.0
#include "server/handlers.h"

namespace gflow::server {

void show_health(Exchange exchange) { exchange.respond({200, "ok\n", "text/plain", {}}); }

void show_readiness(Exchange exchange) {
  const auto ready = exchange.service.ready();
  exchange.respond(ready ? Reply{200, "ok\n", "text/plain", {}} : problem(ready.error()));
}

}  // namespace gflow::server
