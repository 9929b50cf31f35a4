// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "core/requests.h"
#include "engine/feasible.h"
#include "engine/turn.h"

namespace gflow::engine {
namespace {

/// Where in a submission of several jobs an error lies: nothing for a single job.
Result<void> at_position(Result<void> checked, std::size_t position, std::size_t count) {
  if (checked || count == 1) return checked;
  return with_context(checked.error(), fmt::format("job {} of {}", position + 1, count));
}

}  // namespace

/// A job may depend on one there is, or on one before it in its submission.
Result<void> Turn::check_dependencies(const Dependencies& dependencies,
                                      std::size_t position) const {
  for (const JobId id : dependencies.jobs) {
    const bool sibling = (id.value & event::kSibling) != 0;
    if (sibling && (id.value ^ event::kSibling) < position) continue;
    if (!sibling && index_.find(id) != nullptr) continue;
    if (sibling || id >= index_.next_id) {
      return fail(Code::NotFound,
                  sibling
                      ? std::string("a job can only depend on jobs before it")
                      : fmt::format("it depends on job {}, and there is no such job", id.value));
    }
    return fail(Code::NotFound,
                fmt::format("it depends on job {}, which ended so long ago that it is forgotten",
                            id.value));
  }
  return {};
}

Result<void> Turn::check_spec(const JobSpec& spec, std::size_t position) {
  if (!spec.name.empty()) GF_CHECK(check_name(spec.name));
  GF_CHECK(check_ranges(spec));
  GF_CHECK(check_preemption(spec));
  GF_CHECK(check_dependencies(spec.dependencies, position));
  return check_request(index_, spec.request);
}

void Turn::take(const event::Submit& event) {
  const std::size_t count = event.specs.size();
  const std::size_t pending = index_.count(kPending);
  if (count == 0) return answer(fail(Code::Usage, "there is no job in this submission"));
  if (count > index_.policy.max_submit) {
    return answer(fail(
        Code::Exhausted,
        fmt::format("{} jobs in one submission; the most is {}", count, index_.policy.max_submit)));
  }
  if (pending + count > index_.policy.max_queued) {
    return answer(fail(
        Code::Exhausted,
        fmt::format(
            "{} jobs are waiting already; the most is {}", pending, index_.policy.max_queued)));
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (auto checked = at_position(check_spec(event.specs[i], i), i, count); !checked) {
      return answer(std::unexpected(checked.error()));
    }
  }
  const std::uint64_t first = index_.next_id.value;
  std::vector<JobId> ids;
  for (std::size_t i = 0; i < count; ++i) {
    Job job;
    job.id = JobId(first + i);
    job.spec = event.specs[i];
    job.submitted = index_.now.wall;
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
    saved(ids.back());
  }
  index_.next_id = JobId(first + count);
  // A dependency may have failed before this was submitted; the answer is the same as after.
  for (const JobId id : ids) {
    const Job& job = *index_.find(id);
    if (is_ended(job) || !job.spec.dependencies.auto_cancel ||
        index_.dependency_state(job) != DependencyState::Never) {
      continue;
    }
    end(id,
        Status::Cancelled,
        {.reason = EndReason::DependencyFailed, .message = "a job it depends on did not finish"});
  }
  answer(std::move(ids));
}

}  // namespace gflow::engine
