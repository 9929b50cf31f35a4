// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "api/operation.h"
#include "server/exchange.h"

namespace gflow::server {

/// Whether an Accept takes a media type, "application/json"; an empty one takes all.
[[nodiscard]] bool takes_media(std::string_view accept, std::string_view media);

/// 415: a body of that type is no JSON.
[[nodiscard]] Reply refusal_of_type(std::string_view content_type);

/// 406 where the caller takes nothing that this route answers, 415 where the body is no JSON or in
/// a coding that is not read.
[[nodiscard]] std::optional<Reply> refuse_of_media(const Request& request,
                                                   const api::Operation& about);

}  // namespace gflow::server
