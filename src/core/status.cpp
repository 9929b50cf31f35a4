// SPDX-License-Identifier: Apache-2.0
#include "core/status.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/translate.h"

namespace gflow {

std::vector<Status> StatusSet::list() const {
  std::vector<Status> all;
  for (const StatusInfo& info : kStatuses) {
    if (contains(info.status)) all.push_back(info.status);
  }
  return all;
}

Result<Status> parse_status(std::string_view text) {
  const std::string wanted = to_lower(trim(text));
  std::vector<std::string> names;
  for (const StatusInfo& info : kStatuses) {
    if (wanted == to_lower(info.name) || wanted == to_lower(info.code)) return info.status;
    names.emplace_back(info.name);
  }
  return fail(
      Code::Usage,
      tr_format("'{}' is not a state; the states are {}", printable(text), join(names, ", ")));
}

std::string status_codes() {
  std::vector<std::string> codes;
  for (const StatusInfo& info : kStatuses) codes.emplace_back(info.code);
  return join(codes, " ");
}

}  // namespace gflow
