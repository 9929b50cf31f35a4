// SPDX-License-Identifier: Apache-2.0
#include "server/openapi.h"

#include <algorithm>

#include "api/openapi.h"
#include "api/query.h"
#include "base/text.h"
#include "base/translate.h"
#include "server/handlers.h"

namespace gflow::server {
namespace {

Result<void> check_key(const std::string& key) {
  constexpr std::size_t kMaxKeyBytes = 200;
  if (key.size() <= kMaxKeyBytes && is_utf8(key)) return {};
  return fail(Code::Usage,
              tr_format("Idempotency-Key must be UTF-8 of at most {} bytes", kMaxKeyBytes));
}

}  // namespace

std::string_view who_may(Verb verb) {
  switch (verb) {
    case Verb::Read:
    case Verb::Submit:
      return tr_later("everyone who may connect");
    case Verb::Change:
      return tr_later("the owner, operators");
    case Verb::Operate:
      return tr_later("operators");
    case Verb::Administer:
      return tr_later("administrators");
  }
  return "";
}

std::vector<api::RouteView> route_views() {
  std::vector<api::RouteView> views;
  for (const Route& route : routes()) {
    views.push_back({route.method, route.pattern, who_may(route.verb), &route.about});
  }
  return views;
}

Result<void> check_parameters(const Route& route, const Request& request) {
  if (route.about.takes_key) GF_CHECK(check_key(request.idempotency_key));
  const std::string& query = request.query;
  if (query.empty()) return {};
  const std::vector<std::string> known = api::parameter_names(route.about);
  for (const std::string& name : GF_TRY(api::names_in(query))) {
    if (std::ranges::find(known, name) == known.end()) return api::unknown_parameter(name, known);
  }
  return {};
}

void show_openapi(Exchange exchange) {
  exchange.respond(json_reply_later([version = exchange.service.daemon().version] {
    return api::openapi_document(route_views(), version);
  }));
}

}  // namespace gflow::server
