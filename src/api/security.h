// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "api/json_text.h"
#include "api/operation.h"

/// How it is known who asks, told for the OpenAPI document and the page at /docs.
namespace gflow::api {

struct Identification {
  std::string_view name;   ///< of the security scheme; "" for what a request does not carry
  std::string_view title;  ///< for people
  std::string_view help;
};
[[nodiscard]] const std::array<Identification, 3>& identifications();

/// components.securitySchemes.
[[nodiscard]] Value security_schemes();
/// `security` of a route: any one of them is enough, and with the empty one, which is who the
/// kernel says is connected, a request carries nothing.
[[nodiscard]] Value security_of(const RouteView& route);

}  // namespace gflow::api
