// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/explain.h"
#include "engine/feasible.h"
#include "engine/index.h"
#include "engine/state.h"

namespace gflow::engine {

Result<std::vector<placement::Ranked>> State::rank(const Request& request, std::size_t most) const {
  // Scores are kept with the index; nothing that decides changes.
  Index& index = *index_;
  GF_CHECK(check_request(index, request));
  const PassingDemand passing(index, placement::demand_of(request));
  return index.placer->rank(index.ledger, passing.index(), most);
}

Result<Starts> State::starts(const JobSpec& spec, std::size_t jobs) const {
  Index& index = *index_;
  GF_CHECK(check_request(index, spec.request));
  GF_CHECK(check_gpu_quota(index.policy.gpu_quota, spec));
  const PassingDemand passing(index, placement::demand_of(spec));
  const std::size_t of_user = index.user_limit_left(spec);
  const std::size_t of_group = index.group_limit_left(spec);
  const std::size_t allowed = std::min(of_user, of_group);
  // What each has the next cannot have: on a ledger of their own, with a placer that follows it.
  placement::Ledger later = index.ledger;
  const placement::PolicyEntry& entry = policy_entry(index.policy.placement);
  placement::Placer placer(entry.make(index.policy.placement_options), index.placer->profile());
  Starts starts;
  while (starts.jobs.size() < jobs) {
    auto choice = placer.choose(later, passing.index());
    if (!choice) break;
    if (starts.jobs.size() == allowed) {
      if (of_user <= of_group) {
        starts.limit = user_limit_of(index, spec, index.now, starts.jobs.size());
      } else {
        starts.limit = blocker::GroupLimit{spec.group, spec.max_concurrent};
      }
      break;
    }
    for (const placement::Placement& one : choice->placements) later.take(passing.index(), one);
    starts.jobs.push_back(std::move(choice->placements));
  }
  return starts;
}

}  // namespace gflow::engine
