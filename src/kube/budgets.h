// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kube/objects.h"

/// Disruption budgets of pods, for who tells before anybody asks what they would refuse.
namespace gflow::kube {

/// A PodDisruptionBudget.
struct Budget {
  std::string uid;
  std::string name_space;
  std::string name;
  Selector selector;
  int allowed = 0;  ///< evictions by now; 0, too, while what it says is not looked at yet
};

[[nodiscard]] Budget budget_of(const nlohmann::json& object);

/// Whether the API server would let the pod be evicted if it is ready, as its budgets are now: it
/// refuses where one allows none, and where a pod has several. By uid. One that is not ready it may
/// let go all the same.
[[nodiscard]] bool may_evict(const std::map<std::string, Budget>& budgets, const Pod& pod);

/// The first budget that would not let these go one after the other; null: all would.
[[nodiscard]] const Budget* budget_exceeded(const std::map<std::string, Budget>& budgets,
                                            const std::vector<const Pod*>& pods);

}  // namespace gflow::kube
