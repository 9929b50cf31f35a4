// SPDX-License-Identifier: Apache-2.0
#include "server/handlers.h"

namespace gflow::server {

void show_health(Exchange exchange) { exchange.respond({200, "ok\n", "text/plain", {}}); }

}  // namespace gflow::server
