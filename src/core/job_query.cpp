// SPDX-License-Identifier: Apache-2.0
#include "core/job_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"
#include "base/translate.h"

namespace gflow {
namespace {

struct KeyInfo {
  JobKey key;
  std::string_view name;
  std::string_view field;  ///< that it looks at, as in JobQuery::fields
};
constexpr auto kKeys = std::to_array<KeyInfo>({
    {JobKey::Id, "id", "id"},
    {JobKey::State, "state", "status"},
    {JobKey::Time, "time", "run_time_seconds"},
    {JobKey::Name, "name", "spec.name"},
    {JobKey::Gpus, "gpus", "spec.request"},
    {JobKey::Priority, "priority", "spec.priority"},
});

const KeyInfo& info_of(JobKey key) { return *std::ranges::find(kKeys, key, &KeyInfo::key); }

}  // namespace

std::string job_keys() {
  std::vector<std::string> names;
  for (const KeyInfo& info : kKeys) names.emplace_back(info.name);
  return join(names, ", ");
}

Result<JobOrder> parse_job_order(std::string_view text) {
  const std::string whole = to_lower(text);
  JobOrder order{.descending = whole.starts_with('-')};
  std::string name = order.descending ? whole.substr(1) : whole;
  if (name == "nodes") name = "gpus";  // the column that shows them
  const auto* const at = std::ranges::find(kKeys, name, &KeyInfo::name);
  if (at == kKeys.end()) {
    return fail(Code::Usage, tr_format("'{}' is not one of {}", printable(text), job_keys()));
  }
  order.key = at->key;
  return order;
}

std::string job_order_text(const JobOrder& order) {
  return fmt::format("{}{}", order.descending ? "-" : "", info_of(order.key).name);
}

std::string_view field_of(JobKey key) { return info_of(key).field; }

}  // namespace gflow
