// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "server/exchange.h"

namespace gflow::server {

/// Why a request over TCP is not served: 421 if it is for another host (a name that was made to
/// lead here, DNS rebinding), 403 if a web page asks, 415 for a body a web page could send without
/// asking first. Browsers reach this machine's ports in the name of whoever looks at a page.
[[nodiscard]] std::optional<Reply> refuse_of_web(const Request& request);

}  // namespace gflow::server
