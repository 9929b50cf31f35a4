// SPDX-License-Identifier: Apache-2.0
#include "core/job_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "base/translate.h"

namespace gflow {
namespace {

constexpr std::array<std::pair<std::string_view, JobKey>, 6> kKeys = {{
    {"id", JobKey::Id},
    {"state", JobKey::State},
    {"time", JobKey::Time},
    {"name", JobKey::Name},
    {"gpus", JobKey::Gpus},
    {"priority", JobKey::Priority},
}};

}  // namespace

Result<JobOrder> parse_job_order(std::string_view text) {
  const std::string whole = to_lower(text);
  JobOrder order{.descending = whole.starts_with('-')};
  std::string name = order.descending ? whole.substr(1) : whole;
  if (name == "nodes") name = "gpus";  // the column that shows them
  const auto* const at =
      std::ranges::find(kKeys, name, &std::pair<std::string_view, JobKey>::first);
  if (at == kKeys.end()) {
    return fail(
        Code::Usage,
        tr_format("'{}' is not one of id, state, time, name, gpus, priority", printable(text)));
  }
  order.key = at->second;
  return order;
}

std::string job_order_text(const JobOrder& order) {
  const auto* const at =
      std::ranges::find(kKeys, order.key, &std::pair<std::string_view, JobKey>::second);
  return fmt::format("{}{}", order.descending ? "-" : "", at->first);
}

}  // namespace gflow
