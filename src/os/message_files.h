// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/message_catalogue.h"

namespace gflow::os {

/// The catalogue of a language, "zh_CN", that lies beside the program: ../share/locale of its
/// directory, as in a build as where it is installed. Null if there is none. Read once; it stays as
/// long as the process. Safe to call from any thread.
[[nodiscard]] const MessageCatalogue* messages_of(std::string_view language);
/// The same for a language as the web names it, "zh-CN", "zh-Hans-CN" or "zh": that very one, else
/// the first of that language.
[[nodiscard]] const MessageCatalogue* messages_like(std::string_view language);

}  // namespace gflow::os
