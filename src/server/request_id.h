// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gflow::server {

/// By what a request is known in its answer (X-Request-Id, and instance of a problem) and in the
/// log of the daemon: what the client gave, where that is 1 to 64 letters, digits, ".", "_" and
/// "-"; else one that is made.
[[nodiscard]] std::string request_id_of(std::string_view given);

}  // namespace gflow::server
