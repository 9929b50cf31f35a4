// SPDX-License-Identifier: Apache-2.0
#include "server/openapi.h"

#include "api/openapi.h"
#include "base/translate.h"
#include "server/handlers.h"

namespace gflow::server {
namespace {

/// For people.
std::string_view who_may(Verb verb) {
  switch (verb) {
    case Verb::Read:
    case Verb::Submit:
      return tr_later("everyone who may connect");
    case Verb::Inspect:
    case Verb::Change:
      return tr_later("the owner, operators");
    case Verb::Entrust:
      return tr_later("the owner, administrators");
    case Verb::Operate:
      return tr_later("operators");
    case Verb::Administer:
      return tr_later("administrators");
  }
  return "";
}

Role least_role(Verb verb) {
  if (verb == Verb::Administer) return Role::Administrator;
  return verb == Verb::Operate ? Role::Operator : Role::User;
}

api::RouteView view_of(const Route& route) {
  api::RouteView view{.method = route.method,
                      .pattern = route.pattern,
                      .about = &route.about,
                      .query = route.handler.query()};
  if (is_open(route.method, route.pattern)) {
    view.who = tr_later("everyone, known or not");
    return view;
  }
  view.who = who_may(route.verb);
  view.role = role_name(least_role(route.verb));
  view.scope = scope_name(scope_of(route.verb));
  return view;
}

}  // namespace

std::vector<api::RouteView> route_views() {
  std::vector<api::RouteView> views;
  for (const Route& route : routes()) {
    views.push_back(view_of(route));
  }
  return views;
}

void show_openapi(Exchange exchange) {
  exchange.respond(reply_made_once(exchange,
                                   exchange.request.path,
                                   [version = exchange.service.daemon(OthersJobs::All).version] {
                                     return api::openapi_document(route_views(), version);
                                   }));
}

}  // namespace gflow::server
