// SPDX-License-Identifier: Apache-2.0
#include "engine/feasible.h"
#include "engine/index.h"
#include "engine/state.h"

namespace gflow::engine {

Result<std::vector<placement::Ranked>> State::rank(const Request& request, std::size_t most) const {
  // Scores are kept with the index; nothing that decides changes.
  Index& index = *index_;
  GF_CHECK(check_request(index, request));
  const PassingDemand passing(index, request);
  return index.placer->rank(index.ledger, passing.index(), most);
}

Result<std::vector<std::vector<placement::Placement>>> State::starts(const Request& request,
                                                                     std::size_t jobs) const {
  Index& index = *index_;
  GF_CHECK(check_request(index, request));
  const PassingDemand passing(index, request);
  // What each has the next cannot have: on a ledger of their own, with a placer that follows it.
  placement::Ledger later = index.ledger;
  const placement::PolicyEntry& entry = policy_entry(index.policy.placement);
  placement::Placer placer(entry.make(index.policy.placement_options), index.placer->profile());
  std::vector<std::vector<placement::Placement>> all;
  while (all.size() < jobs) {
    auto choice = placer.choose(later, passing.index());
    if (!choice) break;
    for (const placement::Placement& one : choice->placements) later.take(passing.index(), one);
    all.push_back(std::move(choice->placements));
  }
  return all;
}

}  // namespace gflow::engine
