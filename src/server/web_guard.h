// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/exchange.h"

namespace gflow::server {

/// What names this machine has besides localhost, and which web pages may ask.
struct WebRules {
  bool is_remote = false;               ///< of connections from other machines
  std::vector<std::string> host_names;  ///< in lower case, without a port
  std::vector<std::string> origins;     ///< "https://grafana.lab"
};

/// Why a request over TCP is not served: 400 if it has no Host or several, 421 if it is for another
/// host (a name that was made to lead here, DNS rebinding), 403 if a web page asks that is not
/// allowed to, 415 for a body a web page could send without asking first. Browsers reach this
/// machine's ports in the name of whoever looks at a page.
[[nodiscard]] std::optional<Reply> refuse_of_web(const Request& request);

/// The web page that asks and may, by its origin; "" for all else. It is known by what it brings,
/// not by whose browser it is in.
[[nodiscard]] std::string page_of(const Request& request);
/// The answer to a browser that asks whether such a page may ask; empty for all else.
[[nodiscard]] std::optional<Reply> answer_preflight(const Request& request);
/// Lets such a page read the answer; does nothing for "".
void allow_page(const std::string& page, Reply& reply);

}  // namespace gflow::server
