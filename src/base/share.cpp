// SPDX-License-Identifier: Apache-2.0
#include "base/share.h"

#include <fmt/format.h>

namespace gflow {

std::string share_text(Share share) {
  const bool below = share.parts < 0;
  const std::int64_t parts = below ? -std::int64_t{share.parts} : share.parts;
  std::string text = fmt::format(
      "{}{}.{:04}", below ? "-" : "", parts / Share::kWholeParts, parts % Share::kWholeParts);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace gflow
