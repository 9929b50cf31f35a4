// SPDX-License-Identifier: Apache-2.0
#include "engine/index.h"

#include <algorithm>
#include <iterator>

namespace gflow::engine {
namespace {

/// Nothing of the machine limits how many of these run: a byte of memory each is no limit.
bool is_unreserved(const JobSpec& spec) { return spec.request.gpus == 0 && spec.request.cpus == 0; }

}  // namespace

const Job* Index::find(JobId id) const { return jobs.find(id); }

void Index::list(const Job& job, std::uint64_t count) {
  UserJobs& user = by_user[job.spec.user.uid];
  user.name = job.spec.user.name;
  user.jobs.insert(job.id, count);
  by_priority[job.spec.priority].insert(job.id, count);
}

void Index::unlist(const Job& job) {
  const auto user = by_user.find(job.spec.user.uid);
  user->second.jobs.erase(job.id);
  if (user->second.jobs.empty()) by_user.erase(user);
  const auto alike = by_priority.find(job.spec.priority);
  alike->second.erase(job.id);
  if (alike->second.empty()) by_priority.erase(alike);
}

/// To those of its priority now.
void Index::move(const Job& job, int old_priority) {
  const auto before = by_priority.find(old_priority);
  before->second.erase(job.id);
  if (before->second.empty()) by_priority.erase(before);
  by_priority[job.spec.priority].insert(job.id);
}

void Index::insert(Job job) {
  list(job);
  link(jobs.add(std::move(job)));
  ++revision;
}

void Index::insert(const JobRange& range) {
  constexpr std::uint64_t kAtOnce = 1000;  // that are looked at before they are packed again
  list(range.first, range.count);
  jobs.add(range);
  ++revision;
  if (can_be_linked_at_once(range.first)) return link(range.first, range.count, bytes_of(range));
  for (std::uint64_t i = 0; i < range.count; ++i) {
    link(*find(range.id(i)));
    if (i % kAtOnce == kAtOnce - 1) jobs.pack();
  }
}

bool Index::can_be_linked_at_once(const Job& job) {
  return JobTable::can_be_packed(job) && job.spec.dependencies.jobs.empty() && !job.spec.begin;
}

void Index::erase(JobId id) {
  const Job* job = find(id);
  if (job == nullptr) return;
  unlink(*job);
  unlist(*job);
  jobs.erase(id);
  sparing.erase(id);
  gangs.leave(id);
  several_stopped_for.erase(id);
  ++revision;
}

GroupKey group_of(const JobSpec& spec) { return {spec.user.uid, spec.group}; }

Group* Index::group(const Job& job) {
  if (job.spec.group.empty()) return nullptr;
  const auto at = groups.find(group_of(job.spec));
  return at == groups.end() ? nullptr : &at->second;
}

const Group* Index::group(const Job& job) const {
  if (job.spec.group.empty()) return nullptr;
  const auto at = groups.find(group_of(job.spec));
  return at == groups.end() ? nullptr : &at->second;
}

void Index::join_group(const Job& job, std::uint64_t count) {
  if (job.spec.group.empty() || is_ended(job)) return;
  Group& group = groups[group_of(job.spec)];
  if (group.members.empty()) group.limit = job.spec.max_concurrent;
  group.members.insert(job.id, count);
}

/// The last one takes the group with it.
void Index::leave_group(const Job& job) {
  if (job.spec.group.empty()) return;
  const auto at = groups.find(group_of(job.spec));
  if (at == groups.end()) return;
  at->second.members.erase(job.id);
  if (at->second.members.empty()) groups.erase(at);
}

void Index::link(const Job& job) {
  by_status.at(static_cast<std::size_t>(status_of(job))).insert(job.id);
  join_group(job);
  if (is_pending(job)) ++pending[job.spec.user.uid];
  if (is_pending(job) && job.attempts == 0) {
    dependencies.add(job, [this](JobId id) { return end_of(id); });
  } else {
    dependencies.remove(job.id);
  }
  if (const auto* queued = std::get_if<Queued>(&job.state)) link_queued(job, *queued);
  if (is_active(job)) link_active(job, *attempt_of(job));
  if (is_active(job) && is_unreserved(job.spec)) ++unreserved[job.spec.user.uid];
  if (is_ended(job)) {
    ended.add(job, !dependencies.dependents(job.id).empty());
  } else {
    stored[job.spec.user.uid] += bytes_of(job);
    carry(job, 1);
  }
}

void Index::link(const Job& first, std::uint64_t count, std::int64_t bytes) {
  by_status.at(static_cast<std::size_t>(status_of(first))).insert(first.id, count);
  join_group(first, count);
  pending[first.spec.user.uid] += count;
  stored[first.spec.user.uid] += bytes;
  if (std::holds_alternative<Queued>(first.state)) link_ready(first, count);
}

void Index::unlink(const Job& job) {
  by_status.at(static_cast<std::size_t>(status_of(job))).erase(job.id);
  if (is_pending(job)) {
    const auto user = pending.find(job.spec.user.uid);
    if (--user->second == 0) pending.erase(user);
  }
  if (std::holds_alternative<Queued>(job.state)) unlink_queued(job);
  if (is_active(job)) unlink_active(job, *attempt_of(job));
  if (is_active(job) && is_unreserved(job.spec)) {
    const auto user = unreserved.find(job.spec.user.uid);
    if (--user->second == 0) unreserved.erase(user);
  }
  leave_group(job);
  if (is_ended(job)) {
    ended.remove(job);
  } else {
    const auto user = stored.find(job.spec.user.uid);
    user->second -= bytes_of(job);
    if (user->second == 0) stored.erase(user);
    carry(job, -1);
  }
}

void Index::pin_ended() {
  for (const JobId id : dependencies.take_changed()) {
    const Job* job = find(id);
    if (job != nullptr && is_ended(*job)) {
      ended.set_pinned(*job, !dependencies.dependents(id).empty());
    }
  }
}

void Index::link_queued(const Job& job, const Queued& queued) {
  if (job.spec.begin) {
    const bool later = *job.spec.begin > now.wall;
    (later ? begin_later : begun).emplace(*job.spec.begin, job.id);
    if (later) return;
  }
  if (queued.not_before && *queued.not_before > lived()) {
    backoff.emplace(*queued.not_before, job.id);
    return;
  }
  if (dependencies.state(job.id) != DependencyState::Met) return;
  link_ready(job);
}

void Index::unlink_queued(const Job& job) {
  if (job.spec.begin) {
    begin_later.erase({*job.spec.begin, job.id});
    begun.erase({*job.spec.begin, job.id});
  }
  const auto& queued = std::get<Queued>(job.state);
  if (queued.not_before) backoff.erase({*queued.not_before, job.id});
  unqueue(job);
  if (Group* own = group(job)) {
    own->queued.erase(key_of(job));
    own->parked.erase(key_of(job));
    balance(*own);
  }
}

void Index::link_ready(const Job& job, std::uint64_t count) {
  Group* own = group(job);
  if (own == nullptr) {
    queue(job, count);
    return;
  }
  if (own->limit <= 0) {  // nothing is parked
    own->queued.insert(key_of(job), count);
    queue(job, count);
    return;
  }
  own->parked.insert(key_of(job), count);
  balance(*own);
}

void Index::queue(const Job& job, std::uint64_t count) {
  const Shape shape = shape_of(job);
  auto& lines = ready[shape];
  const auto [at, added] = lines.try_emplace(kind_of(job));
  Line& line = at->second;
  line.jobs.insert(key_of(job), count);
  if (Gang* gang = gangs.find(job.id)) {
    gang->waiting.insert(key_of(job));
    fronts.open_gang(shape.gang);  // with one more, others of it may do
  }
  fair.wait(job.spec.user.uid, static_cast<std::int64_t>(count));
  if (!added) return fronts.put(line);
  line.contender = contender_of(job);
  expect(line);
  const Line* sibling = nullptr;
  if (lines.size() > 1) {
    const auto other = lines.begin() == at ? std::next(at) : lines.begin();
    sibling = &other->second;
  }
  fronts.add(line, shape, sibling, fair.penalty_of(job.spec.user.uid));
}

void Index::unqueue(const Job& job) {
  const auto shape = ready.find(shape_of(job));
  if (shape == ready.end()) return;
  const auto line = shape->second.find(kind_of(job));
  if (line == shape->second.end() || line->second.jobs.erase(key_of(job)) == 0) return;
  if (Gang* gang = gangs.find(job.id)) {
    const bool was_alone = gang->start() == GangStart::Alone;
    gang->waiting.erase(key_of(job));
    // Without it the others may be too few to start together, and need not.
    if (!was_alone && gang->start() == GangStart::Alone) fronts.open_gang(gangs.of(job.id));
  }
  const bool is_last = line->second.jobs.empty();
  if (is_last) fronts.remove(line->second);
  fair.wait(job.spec.user.uid, -1);
  if (!is_last) return fronts.put(line->second);
  shape->second.erase(line);
  if (shape->second.empty()) ready.erase(shape);
}

/// Keeps the best of a group's ready jobs in the queue, as many as may still start.
void Index::balance(Group& group) {
  const auto room = [&group] {
    return group.limit <= 0 || static_cast<int>(group.queued.size()) + group.active < group.limit;
  };
  const auto park_last = [this, &group] {
    const QueueKey last = group.queued.back();
    group.queued.erase(last);
    group.parked.insert(last);
    unqueue(*find(last.id));
  };
  const auto queue_first = [this, &group] {
    const QueueKey first = group.parked.front();
    group.parked.erase(first);
    group.queued.insert(first);
    queue(*find(first.id));
  };
  while (!group.parked.empty() && room()) queue_first();
  while (group.limit > 0 && !group.queued.empty() &&
         static_cast<int>(group.queued.size()) + group.active > group.limit) {
    park_last();
  }
  while (!group.parked.empty() && !group.queued.empty() &&
         group.parked.front() < group.queued.back()) {
    park_last();
    queue_first();
  }
}

std::size_t Index::count(StatusSet statuses) const {
  std::size_t jobs_there = 0;
  for (const StatusInfo& info : kStatuses) {
    if (statuses.contains(info.status)) jobs_there += in(info.status).size();
  }
  return jobs_there;
}

bool Index::is_at_user_limit(const JobSpec& spec) const { return user_limit_left(spec) == 0; }

const Gang* Index::gang_to_start(const Job& job) const {
  const Gang* gang = gangs.find(job.id);
  return gang != nullptr && gang->start() == GangStart::Together ? gang : nullptr;
}

std::int64_t Index::parts_to_start(const Job& job) const {
  const Gang* gang = gang_to_start(job);
  if (gang == nullptr) return gpu_parts_of(job.spec.request);
  std::int64_t parts = 0;
  std::size_t needed = gang->needed();
  for (const QueueKey& key : gang->waiting) {
    if (needed-- == 0) break;
    parts += gpu_parts_of(find(key.id)->spec.request);
  }
  return parts;
}

bool Index::is_at_limit(const Job& job) const {
  if (gang_to_start(job) == nullptr) return is_at_user_limit(job.spec);
  return !policy.gpu_quota.none() && parts_to_start(job) > gpu_limit_left(job.spec.user.uid);
}

std::optional<Share> Index::gpu_limit(std::uint32_t uid, std::string_view otherwise) const {
  if (policy.gpu_quota.none()) return std::nullopt;
  const auto user = by_user.find(uid);
  return policy.gpu_quota.of(user == by_user.end() ? otherwise : user->second.name);
}

std::int64_t Index::gpu_limit_left(std::uint32_t uid, std::string_view otherwise) const {
  const auto limit = gpu_limit(uid, otherwise);
  return limit ? limit->parts - fair.held(uid) : std::numeric_limits<std::int64_t>::max();
}

std::size_t Index::user_limit_left(const JobSpec& spec) const {
  if (const std::int64_t parts = gpu_parts_of(spec.request); parts > 0) {
    const std::int64_t left = gpu_limit_left(spec.user.uid, spec.user.name);
    return static_cast<std::size_t>(std::max<std::int64_t>(left, 0) / parts);
  }
  if (!is_unreserved(spec)) return std::numeric_limits<std::size_t>::max();
  const auto user = unreserved.find(spec.user.uid);
  const std::size_t used = user == unreserved.end() ? 0 : user->second;
  const std::size_t most = policy.max_unreserved_per_user;
  return most - std::min(used, most);
}

std::size_t Index::group_limit_left(const JobSpec& spec) const {
  if (spec.group.empty() || spec.max_concurrent <= 0) {
    return std::numeric_limits<std::size_t>::max();
  }
  const auto most = static_cast<std::size_t>(spec.max_concurrent);
  const auto at = groups.find(group_of(spec));
  if (at == groups.end()) return most;
  const std::size_t used = at->second.queued.size() + static_cast<std::size_t>(at->second.active);
  return most - std::min(used, most);
}

std::size_t Index::pending_of(std::uint32_t uid) const {
  const auto user = pending.find(uid);
  return user == pending.end() ? 0 : user->second;
}

std::optional<MonoTime> Index::latest_end(const Job& job) const {
  const Attempt* attempt = attempt_of(job);
  if (!job.spec.time_limit || attempt == nullptr || attempt->boot_id != boot_id)
    return std::nullopt;
  std::chrono::milliseconds stood{0};
  if (const auto* running = std::get_if<Running>(&job.state)) {
    const bool counts = running->lends && running->suspended_by.empty();
    if (running->suspended && !counts) return std::nullopt;
    stood = running->stood;
  }
  return attempt->started_mono + *job.spec.time_limit + job.spec.grace + stood;
}

DependencyGraph::End Index::end_of(JobId id) const {
  const Job* job = find(id);
  if (job != nullptr && !is_ended(*job)) return DependencyGraph::End::NotYet;
  return job != nullptr && status_of(*job) == Status::Finished ? DependencyGraph::End::Finished
                                                               : DependencyGraph::End::Unfinished;
}

}  // namespace gflow::engine
