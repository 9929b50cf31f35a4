// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "base/kept_sentence.h"
#include "core/requests.h"
#include "engine/admission.h"
#include "engine/step_internal.h"

namespace gflow::engine {
void Step::take(const event::Submit& event) {
  if (auto checked = check_submission(index_, event); !checked) {
    return answer(std::unexpected(checked.error()));
  }
  const std::size_t count = event.specs.size();
  const std::uint64_t first = index_.next_id.value;
  std::vector<JobId> ids;
  for (std::size_t i = 0; i < count; ++i) {
    Job job;
    job.id = JobId(first + i);
    job.spec = event.specs[i];
    job.submitted = index_.now.wall;
    job.lived = index_.lived();
    if (!event.payload_bytes.empty()) job.payload_bytes = event.payload_bytes[i];
    if (job.spec.name.empty()) job.spec.name = made_up_name(job.id.value);
    for (JobId& id : job.spec.dependencies.jobs) {
      if ((id.value & event::kSibling) != 0) id = JobId(first + (id.value ^ event::kSibling));
    }
    auto& wants = job.spec.dependencies.jobs;
    std::ranges::sort(wants);
    wants.erase(std::ranges::unique(wants).begin(), wants.end());
    job.state = job.spec.hold ? JobState(Held{}) : JobState(Queued{});
    ids.push_back(job.id);
    index_.placer->arrived(index_.ledger, index_.demand_of(job.spec));
    index_.insert(std::move(job));
    saved(ids.back(), Happening::Submitted);
    const Job& added = *index_.find(ids.back());
    limit_group(added, added.spec.max_concurrent);
  }
  index_.next_id = JobId(first + count);
  // A dependency may have failed before this was submitted; the answer is the same as after.
  for (const JobId id : ids) {
    if (!is_hopeless(*index_.find(id))) continue;
    end(id, Status::Cancelled, hopeless_outcome(*index_.find(id)));
  }
  answer(std::move(ids));
}

/// They end first, so that whatever they took or were waited for is settled as of any other job.
void Step::take(const event::Withdraw& event) {
  for (const JobId id : event.jobs) {
    const Job* job = index_.find(id);
    if (job == nullptr || is_ended(*job)) continue;
    if (is_active(*job)) take(event::AttemptRevoked{id, attempt_of(*job)->number});
    if (is_ended(*job)) continue;
    end(id,
        Status::Cancelled,
        {.reason = EndReason::Cancelled, .message = kept<Kept::NotStored>()});
  }
  for (const JobId id : event.jobs) {
    index_.erase(id);
    effects_.emplace_back(effect::Forget{id});
  }
}

}  // namespace gflow::engine
