// SPDX-License-Identifier: Apache-2.0
#include "api/json.h"
#include "server/handlers.h"

namespace gflow::server {

void show_daemon(Exchange exchange) {
  const OthersJobs shown = sight_of(exchange.caller).others;
  exchange.respond(json_reply_of(exchange.service.daemon(shown)));
}

void show_version(Exchange exchange) {
  const std::string version = exchange.service.daemon(OthersJobs::None).version;
  exchange.respond(short_reply_of(api::VersionView{version}));
}

void stop_daemon(Exchange exchange) {
  // Answered first: the tick that stops writes nothing any more.
  exchange.respond(empty_reply());
  exchange.service.stop();
}

void reload_daemon(Exchange exchange) {
  const auto done = exchange.service.reload();
  exchange.respond(done ? empty_reply() : problem(done.error()));
}

}  // namespace gflow::server
