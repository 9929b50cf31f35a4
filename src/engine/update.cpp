// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "core/gpu_request.h"
#include "core/requests.h"
#include "engine/feasible.h"
#include "engine/turn.h"

namespace gflow::engine {
namespace {

/// "name, priority, time limit": what may still be changed of a job that runs.
std::string changeable_names() {
  const JobSpec any;
  std::vector<std::string> names;
  each_leaf(
      [&names](const auto& row, const auto& /*value*/) {
        if (row.change == Change::Active) names.push_back(field_words(row.name));
      },
      any);
  return join(names, ", ");
}

Result<void> check_time(const Job& job, const JobChanges& changes) {
  if (is_ended(job)) {
    return fail(Code::WrongState, fmt::format("job {} has ended", job.id.value));
  }
  for (const FieldInfo& row : changes.rows()) {
    if (row.change == Change::Never) {
      return fail(Code::Usage,
                  fmt::format("the {} of a job cannot be changed", field_words(row.name)));
    }
    if (row.change == Change::Pending && is_active(job)) {
      return fail(Code::WrongState,
                  fmt::format("job {} runs: its {} cannot be changed any more, only {}",
                              job.id.value,
                              field_words(row.name),
                              changeable_names()));
    }
  }
  return {};
}

}  // namespace

/// Walks what the new dependencies depend on, and refuses to come back to the job itself.
Result<void> Turn::check_cycle(JobId job, const Dependencies& dependencies) const {
  std::vector<JobId> open = dependencies.jobs;
  std::set<JobId> seen;
  while (!open.empty()) {
    const JobId id = open.back();
    open.pop_back();
    if (id == job) {
      return fail(
          Code::Usage,
          fmt::format("job {} would depend on itself: the dependencies form a circle", job.value));
    }
    const Job* next = index_.find(id);
    if (!seen.insert(id).second || next == nullptr || is_ended(*next)) continue;
    const auto& further = next->spec.dependencies.jobs;
    open.insert(open.end(), further.begin(), further.end());
  }
  return {};
}

/// The specification as it will be. Only what changes is checked: the rest was, when it was asked
/// for, and may have become history since.
Result<JobSpec> Turn::updated(const Job& job, const JobChanges& changes) {
  GF_CHECK(check_time(job, changes));
  JobSpec spec = job.spec;
  changes.apply(spec);
  GF_CHECK(check_ranges(changes.to()));
  if (changes.has(&JobSpec::name)) GF_CHECK(check_name(spec.name));
  const bool asks_otherwise = changes.has(&JobSpec::request);
  if (asks_otherwise) GF_CHECK(settle(spec.request));
  if (asks_otherwise || changes.has(&JobSpec::preemption) ||
      changes.has(&JobSpec::preempt_signal)) {
    GF_CHECK(check_preemption(spec));
  }
  if (changes.has(&JobSpec::dependencies)) {
    auto& wants = spec.dependencies.jobs;
    std::ranges::sort(wants);
    wants.erase(std::ranges::unique(wants).begin(), wants.end());
    GF_CHECK(check_cycle(job.id, spec.dependencies));
    GF_CHECK(check_dependencies(spec.dependencies, 0));
  }
  if (asks_otherwise) GF_CHECK(check_request(index_, spec.request));
  return spec;
}

void Turn::update(JobId id, JobSpec spec, const JobChanges& changes) {
  index_.change(id, [&spec](Job& job) { job.spec = std::move(spec); });
  const Job& job = *index_.find(id);
  if (changes.has(&JobSpec::max_concurrent) && !job.spec.group.empty()) {
    index_.limit_group(job.spec.group, job.spec.max_concurrent);
  }
  saved(id);
  if (changes.has(&JobSpec::time_limit) && is_active(job)) {
    effects_.emplace_back(effect::ChangeLimit{id, attempt_of(job)->number});
  }
  if (is_pending(job) && job.spec.dependencies.auto_cancel &&
      index_.dependency_state(job) == DependencyState::Never) {
    end(id,
        Status::Cancelled,
        {.reason = EndReason::DependencyFailed, .message = "a job it depends on did not finish"});
  }
}

void Turn::take(const event::Update& event) {
  std::vector<JobSpec> specs;
  for (const JobId id : event.jobs) {
    const auto job = owned(id, event.by);
    if (!job) return answer(std::unexpected(job.error()));
    auto spec = updated(**job, event.changes);
    if (!spec) return answer(std::unexpected(spec.error()));
    specs.push_back(*std::move(spec));
  }
  for (std::size_t i = 0; i < specs.size(); ++i) {
    update(event.jobs[i], std::move(specs[i]), event.changes);
  }
  answer(event.jobs);
}

}  // namespace gflow::engine
