// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/exchange.h"
#include "server/terms.h"

namespace gflow::server {

/// What is true of every answer, whatever the route: its request id, which a problem has as
/// instance; Retry-After where trying again may help; an entity tag of what was read, or 304 for
/// what the client knows; and gzip where it takes that. What comes in pieces has neither tag nor
/// coding.
[[nodiscard]] Reply finished(const Terms& terms, Reply reply);

}  // namespace gflow::server
