// SPDX-License-Identifier: Apache-2.0
#include "kube/budgets.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kube/fields.h"

namespace gflow::kube {
namespace {

bool keeps(const Budget& budget, const Pod& pod) {
  return budget.name_space == pod.name_space && selects(budget.selector, pod.labels);
}

}  // namespace

Budget budget_of(const nlohmann::json& object) {
  const nlohmann::json& metadata = part(object, "metadata");
  const nlohmann::json& status = part(object, "status");
  Budget budget{.uid = text(metadata, "uid"),
                .name_space = text(metadata, "namespace"),
                .name = text(metadata, "name"),
                .selector = label_selector_of(part(part(object, "spec"), "selector"))};
  const bool is_seen = number(status, "observedGeneration") >= number(metadata, "generation");
  if (is_seen) budget.allowed = number(status, "disruptionsAllowed");
  return budget;
}

bool may_evict(const std::map<std::string, Budget>& budgets, const Pod& pod) {
  int its = 0;
  for (const auto& [uid, budget] : budgets) {
    if (!keeps(budget, pod)) continue;
    if (budget.allowed < 1 || ++its > 1) return false;
  }
  return true;
}

const Budget* budget_exceeded(const std::map<std::string, Budget>& budgets,
                              const std::vector<const Pod*>& pods) {
  for (const auto& [uid, budget] : budgets) {
    const auto its =
        std::ranges::count_if(pods, [&](const Pod* pod) { return keeps(budget, *pod); });
    if (its > budget.allowed) return &budget;
  }
  return nullptr;
}

}  // namespace gflow::kube
