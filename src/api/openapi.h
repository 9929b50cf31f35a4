// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "api/operation.h"

namespace gflow::api {

/// The OpenAPI 3.1 document of these routes: parameters and answers as they are told, documents as
/// their lists of fields say. Sentences are in the language of this thread's messages.
[[nodiscard]] std::string openapi_document(std::span<const RouteView> routes,
                                           std::string_view version);

}  // namespace gflow::api
