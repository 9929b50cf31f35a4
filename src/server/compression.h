// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gflow::server {

/// Whether an Accept-Encoding takes gzip (RFC 9110, 12.5.3).
[[nodiscard]] bool takes_gzip(std::string_view accept_encoding);

/// The text as gzip has it (RFC 1952), fast rather than small; "" if there is no memory for it.
[[nodiscard]] std::string gzip(std::string_view text);

}  // namespace gflow::server
