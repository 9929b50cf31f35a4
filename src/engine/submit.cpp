// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "base/translate.h"
#include "core/requests.h"
#include "engine/feasible.h"
#include "engine/step_internal.h"

namespace gflow::engine {
namespace {

/// Where in a submission of several jobs an error lies: nothing for a single job.
Result<void> at_position(Result<void> checked, std::size_t position, std::size_t count) {
  if (checked || count == 1) return checked;
  return with_context(checked.error(), tr_format("job {} of {}", position + 1, count));
}

}  // namespace

/// Whether so many dependencies may come to those of a user, as so many go.
Result<void> Step::check_edges(std::uint32_t uid, std::size_t more, std::size_t fewer) const {
  const auto refuse = [&](std::size_t have, std::size_t most, std::string_view whose) {
    return fail(Code::Exhausted,
                tr_format("{} more dependencies: {} waiting jobs have {}, and the maximum is {}; "
                          "let the jobs depend on one job that depends on the others",
                          more,
                          whose,
                          have - fewer,
                          most));
  };
  const DependencyGraph& graph = index_.dependencies;
  if (graph.edges_of(uid) - fewer + more > index_.policy.max_dependencies_per_user) {
    return refuse(graph.edges_of(uid), index_.policy.max_dependencies_per_user, "the user's");
  }
  if (graph.edges() - fewer + more > index_.policy.max_dependencies) {
    return refuse(graph.edges(), index_.policy.max_dependencies, "all");
  }
  return {};
}

/// A job may depend on one there is, or on one before it in its submission.
Result<void> Step::check_dependencies(const Dependencies& dependencies,
                                      std::size_t position) const {
  if (dependencies.jobs.size() > index_.policy.max_dependencies_per_job) {
    return fail(Code::Exhausted,
                tr_format("it depends on {} jobs; the maximum is {}",
                          dependencies.jobs.size(),
                          index_.policy.max_dependencies_per_job));
  }
  for (const JobId id : dependencies.jobs) {
    const bool sibling = (id.value & event::kSibling) != 0;
    if (sibling && (id.value ^ event::kSibling) < position) continue;
    if (!sibling && index_.find(id) != nullptr) continue;
    if (sibling || id >= index_.next_id) {
      return fail(Code::NotFound,
                  sibling ? tr("a job can only depend on jobs before it")
                          : tr_format("it depends on job {}, which does not exist", id.value));
    }
    return fail(
        Code::NotFound,
        tr_format("it depends on job {}, which ended too long ago to be remembered", id.value));
  }
  return {};
}

Result<void> Step::check_spec(const JobSpec& spec, std::size_t position) {
  if (!spec.name.empty()) GF_CHECK(check_name(spec.name));
  GF_CHECK(check_fields(spec));
  GF_CHECK(check_preemption(spec));
  GF_CHECK(check_dependencies(spec.dependencies, position));
  return check_request(index_, spec.request);
}

/// Whether so much more of scripts, environments and other texts may come to those of a user.
Result<void> Step::check_stored(const User& user, Memory more) const {
  const auto at = index_.stored.find(user.uid);
  const Memory own{at == index_.stored.end() ? 0 : at->second};
  if (own + more <= index_.policy.max_stored_per_user) return {};
  return fail(
      Code::Exhausted,
      tr_format("{} more of scripts, environments and other texts: the waiting and running jobs of "
                "{} hold {}, and the maximum per user is {} (limits.max_stored_per_user)",
                memory_text(more),
                user.name,
                memory_text(own),
                memory_text(index_.policy.max_stored_per_user)));
}

Result<void> Step::check_submission(const event::Submit& event) {
  const std::size_t count = event.specs.size();
  const std::size_t pending = index_.count(kPending);
  if (count == 0) return fail(Code::Usage, tr("the submission has no jobs"));
  if (count > index_.policy.max_submit) {
    return fail(
        Code::Exhausted,
        tr_format("{} jobs in one submission; the maximum is {}", count, index_.policy.max_submit));
  }
  if (pending + count > index_.policy.max_queued) {
    return fail(
        Code::Exhausted,
        tr_format(
            "{} jobs are already waiting; the maximum is {}", pending, index_.policy.max_queued));
  }
  for (const JobSpec& spec : event.specs) GF_CHECK(may_submit_for(event.by, spec.user));
  const std::size_t own = index_.pending_of(event.specs.front().user.uid);
  if (own + count > index_.policy.max_queued_per_user) {
    return fail(Code::Exhausted,
                tr_format("{} jobs of {} are already waiting; the maximum per user is {}",
                          own,
                          event.specs.front().user.name,
                          index_.policy.max_queued_per_user));
  }
  std::int64_t bytes = 0;
  for (const JobSpec& spec : event.specs) bytes += static_cast<std::int64_t>(bytes_of(spec));
  for (const std::int64_t payload : event.payload_bytes) bytes += payload;
  GF_CHECK(check_stored(event.specs.front().user, Memory{bytes}));
  std::size_t edges = 0;
  for (const JobSpec& spec : event.specs) edges += spec.dependencies.jobs.size();
  if (edges > 0) GF_CHECK(check_edges(event.specs.front().user.uid, edges, 0));
  for (std::size_t i = 0; i < count; ++i) {
    const JobSpec& spec = event.specs[i];
    auto checked = check_spec(spec, i);
    if (checked) {
      checked = may_have_priority(index_.policy.priority, event.by, spec.project, spec.priority);
    }
    GF_CHECK(at_position(std::move(checked), i, count));
  }
  return {};
}

void Step::take(const event::Submit& event) {
  if (auto checked = check_submission(event); !checked) {
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
    saved(ids.back());
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
    end(id, Status::Cancelled, {.reason = EndReason::Cancelled, .message = "it was not stored"});
  }
  for (const JobId id : event.jobs) {
    index_.erase(id);
    effects_.emplace_back(effect::Forget{id});
  }
}

}  // namespace gflow::engine
