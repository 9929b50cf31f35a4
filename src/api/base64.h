// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gflow::api {

/// RFC 4648 section 4, with padding.
[[nodiscard]] std::string base64_encode(std::string_view bytes);
/// The bytes, or an empty optional for anything that base64_encode() does not write.
[[nodiscard]] std::optional<std::string> base64_decode(std::string_view text);

}  // namespace gflow::api
