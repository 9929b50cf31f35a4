// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "server/exchange.h"

namespace gflow::server {

/// Says in the head of a page's reply where the next one is (Link, RFC 8288), so that it can be
/// asked for before this one is read: the same request with `after` it. Nothing where `next` is
/// empty, or where the link would be longer than what reads headers may take.
void link_next(Reply& reply, const Request& request, std::string_view next);

}  // namespace gflow::server
