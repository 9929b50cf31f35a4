// SPDX-License-Identifier: Apache-2.0
#include "api/account.h"

#include <string_view>

#include "server/handlers.h"
#include "settings/settings.h"

namespace gflow::server {
namespace {

/// To whom others' jobs are not shown, neither is who there is besides.
void hide_users(std::vector<api::SettingView>& settings, const Principal& caller) {
  const auto is_caller = [&caller](std::string_view user) { return user == caller.name; };
  for (api::SettingView& setting : settings) {
    if (!settings::names_users(setting.name)) continue;
    setting.value = settings::only_of(setting.value, is_caller);
  }
}

}  // namespace

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
  std::vector<api::SettingView> settings = exchange.service.settings();
  if (sight_of(exchange.caller).others == OthersJobs::None) hide_users(settings, exchange.caller);
  exchange.respond(json_reply(api::write_settings(settings)));
}

}  // namespace gflow::server
