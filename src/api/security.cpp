// SPDX-License-Identifier: Apache-2.0
#include "api/security.h"

#include "base/translate.h"

namespace gflow::api {
namespace {

constexpr std::string_view kToken = "token";
constexpr std::string_view kCertificate = "certificate";

Value described(std::string_view name) {
  for (const Identification& one : identifications()) {
    if (one.name == name) return json(tr(one.help));
  }
  return json(std::string_view());
}

/// With what the scheme asks of who shows it.
Value requirement(std::string_view scheme, Value::Array needs) {
  return Members().add(scheme, Value{std::move(needs)}).value();
}

}  // namespace

const std::array<Identification, 3>& identifications() {
  static constexpr std::array<Identification, 3> kAll = {{
      {"",
       tr_later("On this machine"),
       tr_later("Over gflowd's socket you are who the kernel says is connected, with your role; "
                "over its port on this machine the same, as a user and no more. A request carries "
                "nothing for that, and nothing in it can claim otherwise.")},
      {kToken,
       tr_later("With a token"),
       tr_later("Authorization: Bearer gflow_..., from 'gctl token create NAME --scope SCOPE': you "
                "act as its owner, within its scope (read, submit, operate, admin; each includes "
                "those before it). Over TCP only; it takes precedence over a certificate.")},
      {kCertificate,
       tr_later("With a certificate"),
       tr_later("Over https, of the authority in [api] client_ca: you are the account that its "
                "common name is.")},
  }};
  return kAll;
}

Value security_schemes() {
  return Members()
      .add(kToken,
           Members()
               .add("type", "http")
               .add("scheme", "bearer")
               .add("bearerFormat", "gflow_[0-9a-f]{64}")
               .add("description", described(kToken))
               .value())
      .add(kCertificate,
           Members().add("type", "mutualTLS").add("description", described(kCertificate)).value())
      .value();
}

Value security_of(const RouteView& route) {
  if (route.scope.empty()) return {Value::Array{}};
  Value::Array any_of;
  any_of.push_back(Members().value());
  if (route.about->is_of_socket) return {std::move(any_of)};
  any_of.push_back(requirement(kToken, {json(route.scope)}));
  any_of.push_back(requirement(kCertificate, {}));
  return {std::move(any_of)};
}

}  // namespace gflow::api
