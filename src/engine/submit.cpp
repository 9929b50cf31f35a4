// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/kept_sentence.h"
#include "core/requests.h"
#include "engine/admission.h"
#include "engine/step_internal.h"

namespace gflow::engine {

std::optional<Share> GpuQuota::of(std::string_view user) const {
  const auto own = users.find(user);
  const int gpus = own == users.end() ? per_user : own->second;
  return gpus == 0 ? std::nullopt : std::optional(Share{gpus * Share::kWholeParts});
}

std::uint64_t event::Submit::count() const {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < specs.size(); ++i) count += count_of(i);
  return count;
}

namespace {

/// The jobs a spec stands for, of which the first gets this id.
JobRange range_of(const event::Submit& event, std::size_t position, JobId id) {
  JobRange range;
  range.count = event.count_of(position);
  Job& job = range.first;
  job.id = id;
  job.spec = event.specs[position];
  if (!event.payload_bytes.empty()) job.payload_bytes = event.payload_bytes[position];
  std::string& name = job.spec.name;
  if (!event.tasks.empty() && event.tasks[position]) {
    const TaskRange& tasks = *event.tasks[position];
    range.naming = naming_of(name, tasks);
    name = task_name(name, tasks.first);
  }
  if (name.empty()) name = made_up_name(id.value);
  job.state = job.spec.hold ? JobState(Held{}) : JobState(Queued{});
  return range;
}

}  // namespace

void Step::take(const event::Submit& event) {
  if (auto checked = check_submission(index_, event); !checked) {
    return answer(std::unexpected(checked.error()));
  }
  std::vector<JobId> firsts;  // of each spec
  std::vector<JobId> ids;
  for (std::size_t i = 0; i < event.specs.size(); ++i) {
    firsts.push_back(index_.next_id);
    JobRange range = range_of(event, i, index_.next_id);
    Job& job = range.first;
    job.submitted = index_.now.wall;
    job.lived = index_.lived();
    auto& wants = job.spec.dependencies.jobs;
    for (JobId& id : wants) {
      if ((id.value & event::kSibling) != 0) id = firsts.at(id.value ^ event::kSibling);
    }
    std::ranges::sort(wants);
    wants.erase(std::ranges::unique(wants).begin(), wants.end());
    for (std::uint64_t task = 0; task < range.count; ++task) ids.push_back(range.id(task));
    index_.next_id = JobId(range.last().value + 1);
    add(std::move(range));
  }
  // A dependency may have failed before this was submitted; the answer is the same as after.
  for (std::size_t i = 0; i < event.specs.size(); ++i) {
    if (event.specs[i].dependencies.jobs.empty()) continue;
    for (std::uint64_t task = 0; task < event.count_of(i); ++task) {
      const Job& job = *index_.find(JobId(firsts[i].value + task));
      if (is_hopeless(job)) end(job.id, Status::Cancelled, hopeless_outcome(job));
    }
  }
  answer(std::move(ids));
}

/// New jobs, of which all indexes and the shell are told.
void Step::add(JobRange range) {
  const JobId first = range.first.id;
  index_.placer->arrived(index_.ledger, index_.demand_of(range.first.spec), range.count);
  if (range.count == 1) {
    index_.insert(std::move(range.first));
    saved(first, Happening::Submitted);
  } else {
    index_.insert(range);
    effects_.emplace_back(effect::SaveRange{std::make_shared<const JobRange>(std::move(range))});
  }
  const Job& added = *index_.find(first);
  limit_group(added, added.spec.max_concurrent);
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
