// SPDX-License-Identifier: Apache-2.0
#include "api/account.h"

#include "server/handlers.h"

namespace gflow::server {

void show_principal(Exchange exchange) {
  const Principal& caller = exchange.caller;
  const engine::State& state = exchange.service.state();
  const PriorityLimits& limits = state.policy().priority;
  api::PrincipalView view;
  view.name = caller.name;
  view.role = role_name(caller.role);
  view.known_by = known_by_name(caller.known_by);
  view.scope = scope_name(caller.scope);
  view.credential = caller.credential;
  view.max_priority = max_priority(limits, caller, "");
  for (const std::string& project : caller.projects) {
    const int there = max_priority(limits, caller, project);
    if (there != view.max_priority) view.projects.push_back({project, there});
  }
  if (caller.uid) {
    const Share held = state.gpus_held(*caller.uid);
    view.gpus_held = static_cast<double>(held.parts) / Share::kWholeParts;
    if (const auto most = state.policy().gpu_quota.of(caller.name)) {
      view.max_gpus = most->parts / Share::kWholeParts;
    }
  }
  exchange.respond(short_reply_of(std::move(view)));
}

void show_settings(Exchange exchange) {
  exchange.respond(json_reply(api::write_settings(exchange.service.settings())));
}

}  // namespace gflow::server
