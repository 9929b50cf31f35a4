// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "base/translate.h"
#include "core/gpu_request.h"
#include "core/requests.h"
#include "engine/admission.h"
#include "engine/feasible.h"
#include "engine/lending.h"
#include "engine/step_internal.h"

namespace gflow::engine {
namespace {

/// "name, priority, time limit": what may still be changed of a job that runs.
std::string changeable_names() {
  const JobSpec any;
  std::vector<std::string> names;
  each_leaf(
      [&names](const auto& row, const auto& /*value*/) {
        if (row.change == Change::Active) names.push_back(field_label(row.name));
      },
      any);
  return join(names, ", ");
}

/// Whoever runs a job ends it by itself when its time limit is over: what is said then, or right
/// before, may come too late, and would be acknowledged in vain.
Result<void> check_limit_is_ahead(const Job& job, const JobChanges& changes, Now now) {
  constexpr std::chrono::milliseconds kOnTheWay{500};
  if (!changes.has(&JobSpec::time_limit) || !job.spec.time_limit) return {};
  if (status_of(job) != Status::Running) return {};
  if (run_time_of(job, now.mono) + kOnTheWay < *job.spec.time_limit) return {};
  return fail(Code::WrongState, tr_format("job {} ends now: its time limit is over", job.id.value));
}

Result<void> check_time(const Job& job, const JobChanges& changes, Now now) {
  if (is_ended(job)) {
    return fail(Code::WrongState, tr_format("job {} has ended", job.id.value));
  }
  for (const FieldInfo& row : changes.rows(job.spec)) {
    if (row.change == Change::Never) {
      return fail(Code::Usage,
                  tr_format("the {} of a job cannot be changed", field_label(row.name)));
    }
    if (row.change == Change::Pending && is_active(job)) {
      return fail(Code::WrongState,
                  tr_format("job {} is running: its {} can no longer be changed, only {}",
                            job.id.value,
                            field_label(row.name),
                            changeable_names()));
    }
  }
  GF_CHECK(check_limit_is_ahead(job, changes, now));
  if (job.attempts > 0 && changes.has(&JobSpec::dependencies)) {
    return fail(Code::WrongState,
                tr_format("job {} has already run, and its dependencies are over; hold it, or "
                          "submit it again with --depends-on",
                          job.id.value));
  }
  return {};
}

}  // namespace

/// Walks what the new dependencies depend on, once for all jobs that get them, and refuses to come
/// to one of these.
Result<void> Step::check_cycle(const std::vector<JobId>& jobs,
                               const Dependencies& dependencies) const {
  const std::set<JobId> changing(jobs.begin(), jobs.end());
  std::set<JobId> seen(dependencies.jobs.begin(), dependencies.jobs.end());
  std::vector<JobId> open = dependencies.jobs;
  while (!open.empty()) {
    const JobId id = open.back();
    open.pop_back();
    if (changing.contains(id)) {
      return fail(
          Code::Usage,
          tr_format("job {} would depend on itself: the dependencies form a cycle", id.value));
    }
    if (!index_.dependencies.contains(id)) continue;
    for (const JobId further : index_.find(id)->spec.dependencies.jobs) {
      if (seen.insert(further).second) open.push_back(further);
    }
  }
  return {};
}

/// The new dependencies as a whole, which all the jobs get; whose these are has been checked.
Result<void> Step::check_new_edges(const std::vector<JobId>& jobs,
                                   const Dependencies& wants,
                                   const Principal& by) const {
  GF_CHECK(check_dependencies(index_, wants, 0, sight_of(by)));
  std::map<std::uint32_t, std::pair<std::size_t, std::size_t>> users;  // more, fewer
  for (const JobId id : jobs) {
    const Job& job = *index_.find(id);
    auto& [more, fewer] = users[job.spec.user.uid];
    more += wants.jobs.size();
    if (index_.dependencies.contains(id)) fewer += job.spec.dependencies.jobs.size();
  }
  for (const auto& [uid, edges] : users) {
    GF_CHECK(check_edges(index_, uid, edges.first, edges.second));
  }
  return check_cycle(jobs, wants);
}

/// The specification as it will be. Only what changes is checked: the rest was, when it was asked
/// for, and may have become history since.
Result<JobSpec> Step::updated(const Job& job, const JobChanges& changes, const Principal& by) {
  JobSpec spec = job.spec;
  changes.apply(spec);
  GF_CHECK(check_fields(changes.to()));
  const bool moves = spec.project != job.spec.project;
  if (spec.priority > job.spec.priority || moves) {
    GF_CHECK(may_have_priority(index_.policy.priority, by, spec.project, spec.priority));
  }
  if (changes.has(&JobSpec::name)) GF_CHECK(check_name(spec.name));
  const bool asks_otherwise = changes.has(&JobSpec::request);
  if (asks_otherwise) GF_CHECK(normalise(spec.request));
  if (asks_otherwise || changes.has(&JobSpec::preemption) ||
      changes.has(&JobSpec::preempt_signal)) {
    GF_CHECK(check_preemption(spec));
  }
  if (borrows(index_, job) && spec.preemption != Preemption::Requeue) {
    return fail(Code::WrongState,
                tr_format("job {} has a GPU that another job lends while it is idle: it stays "
                          "--preemptible=requeue until it ends",
                          job.id.value));
  }
  if (asks_otherwise) {
    GF_CHECK(check_request(index_, spec.request));
    GF_CHECK(check_gpu_quota(index_.policy.gpu_quota, spec));
  }
  return spec;
}

void Step::update(JobId id, JobSpec spec, const JobChanges& changes) {
  if (is_ended(*index_.find(id))) return;  // ended as a dependent of one before it in the list
  if (changes.has(&JobSpec::dependencies)) index_.dependencies.remove(id);  // linked anew
  index_.change(id, [&spec](Job& job) { job.spec = std::move(spec); });
  const Job& job = *index_.find(id);
  // Known from now on, also of a job on hold, whose reasons are told by it.
  if (changes.has(&JobSpec::request) || changes.has(&JobSpec::preemption)) {
    (void)index_.demand_of(job.spec);
  }
  saved(id, Happening::Changed);
  if (changes.has(&JobSpec::max_concurrent)) limit_group(job, job.spec.max_concurrent);
  const bool moves_limit = changes.has(&JobSpec::time_limit) || changes.has(&Request::share_limit);
  if (moves_limit && is_active(job)) {
    effects_.emplace_back(effect::ChangeLimit{id, attempt_of(job)->number});
  }
  if (is_hopeless(job)) {
    end(id, Status::Cancelled, hopeless_outcome(job));
  }
}

/// The newest word about the limit of a group is that of all its jobs, so that a restart finds it.
void Step::limit_group(const Job& job, int limit) {
  Group* group = is_ended(job) ? nullptr : index_.group(job);
  if (group == nullptr || group->limit == limit) return;
  group->limit = limit;
  index_.balance(*group);
  const std::vector<JobId> members(group->members.begin(), group->members.end());
  for (const JobId id : members) {
    if (index_.find(id)->spec.max_concurrent == limit) continue;
    index_.change(id, [limit](Job& member) { member.spec.max_concurrent = limit; });
    saved(id, Happening::Changed);
  }
}

void Step::take(const event::Update& event) {
  for (const JobId id : event.jobs) {
    const auto job = changeable(id, event.by);
    if (!job) return answer(std::unexpected(job.error()));
    if (auto in_time = check_time(**job, event.changes, index_.now); !in_time) {
      return answer(std::unexpected(in_time.error()));
    }
  }
  JobChanges changes = event.changes;
  auto& wants = changes.edit().dependencies.jobs;
  if (changes.marked(&wants, sizeof(std::vector<JobId>))) {
    std::ranges::sort(wants);
    wants.erase(std::ranges::unique(wants).begin(), wants.end());
    if (auto checked = check_new_edges(event.jobs, changes.to().dependencies, event.by); !checked) {
      return answer(std::unexpected(checked.error()));
    }
  }
  std::vector<JobSpec> specs;
  for (const JobId id : event.jobs) {
    auto spec = updated(*index_.find(id), changes, event.by);
    if (!spec) return answer(std::unexpected(spec.error()));
    specs.push_back(*std::move(spec));
  }
  for (std::size_t i = 0; i < specs.size(); ++i) {
    update(event.jobs[i], std::move(specs[i]), changes);
  }
  answer(event.jobs);
}

}  // namespace gflow::engine
