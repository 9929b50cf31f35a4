// SPDX-License-Identifier: Apache-2.0
// Allocations that nobody has any use for: what becomes of those that were not answered, and whose
// owner died while they waited.
#include <spdlog/spdlog.h>

#include <set>
#include <vector>

#include "daemon/loop.h"

namespace gflow::daemon {

/// Ends those whose client cannot know of them, as the gflowd before ended ahead of its answer: but
/// for one that gave a key, by which it can ask again.
Result<void> Loop::take_over_allocations() {
  std::vector<JobId> allocations;
  // Of a long queue only these are unpacked.
  state_.glance_some({.statuses = kNotEnded}, JobQuery::kAll, [&](const auto& found) {
    if (found.spec->allocation) allocations.push_back(found.id);
  });
  std::vector<JobId> known;
  std::vector<const Job*> others;
  for (const JobId id : allocations) {
    const Job* job = state_.find(id);
    owners_.see(*job);
    if (answered_.may_be_known(job->id)) {
      known.push_back(job->id);
    } else {
      others.push_back(job);
    }
  }
  answered_.begin(known);
  if (others.empty()) return {};
  const std::set<JobId> with_key = GF_TRY(parts_.store->submitted_with_key());
  for (const Job* job : others) {
    if (with_key.contains(job->id)) continue;
    spdlog::info("nobody was told of allocation {}", job->id.value);
    give_back(*job);
  }
  return {};
}

void Loop::give_back(const Job& allocation) {
  const User& owner = allocation.spec.user;
  request(
      engine::event::Cancel{{allocation.id}, Principal{.name = owner.name, .uid = owner.uid}, 0},
      {});
}

void Loop::leave_queue(JobId allocation) {
  const Job* waiting = state_.find(allocation);
  if (waiting == nullptr || !is_pending(*waiting)) return;
  spdlog::info("the process that allocation {} is for has ended", allocation.value);
  give_back(*waiting);
}

/// Whoever was not answered by now holds nothing.
Result<void> Loop::take_leave() {
  server_.reset();
  io_.restart();
  io_.poll();
  while (!shell_.idle()) GF_CHECK(tick());
  return {};
}

}  // namespace gflow::daemon
