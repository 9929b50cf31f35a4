// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/translate.h"

namespace gflow::server {

/// What sentences of an answer are taken from, by Accept-Language (RFC 9110, 12.5.4). Null for
/// English, which is what there is without one. From any thread.
[[nodiscard]] const MessageCatalogue* messages_wanted(std::string_view accept_language);

}  // namespace gflow::server
