// SPDX-License-Identifier: Apache-2.0
#include "core/requests.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/translate.h"

namespace gflow {

Result<int> parse_priority(std::string_view text) {
  const auto number = parse_number(trim(text));
  if (!number || *number > static_cast<std::uint64_t>(kMaxPriority)) {
    return fail(
        Code::Usage,
        tr_format("'{}' is not a priority; write a number from 0 to {}, higher starts first",
                  printable(text),
                  kMaxPriority));
  }
  return static_cast<int>(*number);
}

}  // namespace gflow
