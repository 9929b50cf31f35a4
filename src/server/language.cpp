// SPDX-License-Identifier: Apache-2.0
#include "server/language.h"

#include <string>

#include "base/text.h"
#include "os/message_files.h"
#include "server/weights.h"

namespace gflow::server {

const MessageCatalogue* messages_wanted(std::string_view accept_language) {
  for (const std::string_view language : by_weight(accept_language)) {
    const std::string primary = to_lower(language.substr(0, language.find_first_of("-_")));
    if (primary == "en" || primary == "*") return nullptr;
    if (const MessageCatalogue* messages = os::messages_like(language)) return messages;
  }
  return nullptr;
}

}  // namespace gflow::server
