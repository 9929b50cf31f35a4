// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <map>

#include "engine/explain.h"
#include "engine/explain_room.h"
#include "engine/feasible.h"
#include "engine/forecast.h"
#include "engine/holders.h"
#include "engine/index.h"

namespace gflow::engine {

using placement::Ledger;
using placement::NodeIndex;
using placement::Presence;

namespace {

/// Whether it waits for its node to be well again rather than for its own pause to be over.
bool waits_for_node(const Index& index, JobId id) {
  return std::ranges::any_of(index.health, [&](const auto& entry) {
    return entry.second.tried.contains(id) && is_closed(entry.second, index.lived());
  });
}

/// Who was told to make room for it and is not gone yet.
std::vector<JobId> leaving_for(const Index& index, const Job& job) {
  std::vector<JobId> leaving;
  const auto* queued = std::get_if<Queued>(&job.state);
  if (queued == nullptr) return leaving;
  std::ranges::copy_if(queued->victims, std::back_inserter(leaving), [&](JobId id) {
    const Job* other = index.find(id);
    return other != nullptr && status_of(*other) == Status::Completing;
  });
  return leaving;
}

blocker::Dependency explain_dependencies(const Index& index,
                                         const Dependencies& wants,
                                         DependencyState state,
                                         Now now) {
  blocker::Dependency waits{{}, wants.mode, state == DependencyState::Never};
  for (const JobId id : wants.jobs) {
    const Job* other = index.find(id);
    const bool finished = other != nullptr && status_of(*other) == Status::Finished;
    const bool over = other == nullptr || is_ended(*other);
    if (waits.never ? !over || finished : over) continue;
    if (waits.never && waits.waiting_for.empty() && other != nullptr) waits.end = status_of(*other);
    waits.waiting_for.push_back(id);
    const bool runs = other != nullptr && is_active(*other);
    if (runs && waits.holders.size() < kMaxHolders) {
      waits.holders.push_back(running(index, *other, now));
    }
  }
  return waits;
}

blocker::GroupLimit explain_group(const Index& index, const JobSpec& spec, int limit, Now now) {
  blocker::GroupLimit waits{spec.group, limit};
  const GroupKey group = group_of(spec);
  const auto most = std::min(kMaxHolders, static_cast<std::size_t>(limit));
  for (const Status status : kActive.list()) {
    for (const JobId id : index.in(status)) {
      if (waits.holders.size() == most) break;
      const Job& job = *index.find(id);
      if (group_of(job.spec) == group) waits.holders.push_back(running(index, job, now));
    }
  }
  std::ranges::sort(waits.holders, {}, &blocker::Holder::job);
  return waits;
}

/// What keeps a job waiting whatever is free, but for a hold: how its dependencies stand, its begin
/// time.
void explain_gates(const Index& index,
                   const JobSpec& spec,
                   DependencyState state,
                   Now now,
                   std::vector<Blocker>& why) {
  if (state != DependencyState::Met) {
    why.emplace_back(explain_dependencies(index, spec.dependencies, state, now));
  }
  if (spec.begin && *spec.begin > now.wall) why.emplace_back(blocker::BeginTime{*spec.begin});
}

Share share_of(std::int64_t parts) { return Share{static_cast<std::int32_t>(parts)}; }

/// When so many parts are given back by what ends then, if ever.
std::optional<WallTime> given_back_at(std::vector<std::pair<WallTime, std::int64_t>> ends,
                                      std::int64_t missing) {
  std::ranges::sort(ends);
  for (const auto& [end, parts] : ends) {
    missing -= parts;
    if (missing <= 0) return end;
  }
  return std::nullopt;
}

/// Its user's jobs that hold GPUs, and when enough of them have ended at their time limits.
struct GpuNeed {
  std::uint32_t uid = 0;
  std::int64_t parts = 0;
  std::int64_t held = 0;  ///< by the user's jobs
};
blocker::GpuLimit explain_gpu_limit(const Index& index,
                                    const GpuNeed& asked,
                                    Share limit,
                                    Now now) {
  const auto& [uid, need, held] = asked;
  blocker::GpuLimit why{share_of(need), share_of(held), limit, {}, std::nullopt};
  std::vector<std::pair<WallTime, std::int64_t>> ends;
  for (const Status status : kActive.list()) {
    for (const JobId id : index.in(status)) {
      const Job& job = *index.find(id);
      const std::int64_t parts = gpu_parts_of(job.spec.request);
      if (job.spec.user.uid != uid || parts == 0) continue;
      if (const auto end = end_on_calendar(index, job, now)) ends.emplace_back(*end, parts);
      for (Allocation& part : allocations_of(*attempt_of(job))) {
        if (why.holders.size() == kMaxHolders) break;
        why.holders.push_back(holder_of(index, job, std::move(part.gpus), now));
      }
    }
  }
  std::ranges::sort(why.holders, {}, &blocker::Holder::job);
  why.until = given_back_at(std::move(ends), held + need - limit.parts);
  return why;
}

/// Who goes before the job: the one whose place is kept against all, or else the first in the
/// queue.
std::optional<blocker::Priority> explain_order(Index& index, const Job& job, Now now) {
  const auto& [head, first] = index.find_awaited();
  const auto is_ahead = [&](JobId id) {
    return id != job.id && index.place_of(*index.find(id)) < index.place_of(job);
  };
  if (head && is_ahead(head->job)) {
    std::optional<WallTime> from;
    if (head->start && head->known) from = now.wall + (*head->start - now.mono);
    return blocker::Priority{head->job, from};
  }
  if (!first || !is_ahead(*first)) return std::nullopt;
  return blocker::Priority{*first, std::nullopt};
}

/// Those on a device that have of it what `has` says.
std::vector<JobId> who_has(const Index& index, NodeIndex node, int gpu, bool (*has)(Presence)) {
  std::vector<JobId> jobs;
  const auto on = index.holders.find({node, gpu});
  if (on == index.holders.end()) return jobs;
  std::ranges::copy_if(on->second, std::back_inserter(jobs), [&](JobId id) {
    return has(presence_of(*index.find(id)));
  });
  return jobs;
}

/// A parked job's memory of a device, which others have.
blocker::GpuMemory explain_parked(
    const Index& index, const Job& job, NodeIndex node, int gpu, Now now) {
  const placement::DeviceState& device =
      index.ledger.state(node).devices[static_cast<std::size_t>(gpu)];
  const Memory reserved =
      index.ledger.reserve_on(placement::demand_of(job.spec.request), device.memory_shared);
  const Memory need = reserved == Memory{} ? device.memory_shared : reserved;
  blocker::GpuMemory lacks{need, std::max(Memory{}, need - device.memory_free)};
  lacks.node = node_shown(index, node);
  for (const JobId id : who_has(index, node, gpu, placement::has_gpu_memory)) {
    lacks.holders.push_back(holder_of(index, *index.find(id), {gpu}, now));
  }
  return lacks;
}

/// Which of a suspended job's devices on a node lack the compute for it to go on, and who has it.
void explain_suspended_on(const Index& index,
                          const Job& job,
                          const Allocation& part,
                          Now now,
                          std::vector<Blocker>& why) {
  const Ledger& ledger = index.ledger;
  const auto node = ledger.find(part.node);
  const auto demand = ledger.find(placement::demand_of(job.spec));
  if (!node || !demand) return;
  placement::NodeState state = ledger.state(*node);
  // Only others keep one that lends its GPU off it.
  const Presence own = presence_of(job);
  if (placement::lends(own)) ledger.give_back_on(state, *demand, part.gpus, own);
  std::map<JobId, std::vector<int>> holding;
  int missing = 0;
  for (const int gpu : part.gpus) {
    const auto place = static_cast<std::size_t>(gpu);
    if (place >= state.devices.size()) continue;
    if (ledger.has_compute(*demand, state.devices[place])) {
      const bool has_memory = placement::has_gpu_memory(presence_of(job)) ||
                              ledger.has_memory(*demand, state.devices[place]);
      if (!has_memory) why.emplace_back(explain_parked(index, job, *node, gpu, now));
      continue;
    }
    ++missing;
    for (const JobId id : who_has(index, *node, gpu, placement::works)) holding[id].push_back(gpu);
  }
  if (missing > 0) {
    const int need = static_cast<int>(part.gpus.size());
    blocker::Gpus lacks{need, need - missing, "", {}, {}, node_shown(index, *node)};
    for (auto& [id, gpus] : holding) {
      lacks.holders.push_back(holder_of(index, *index.find(id), std::move(gpus), now));
    }
    why.emplace_back(std::move(lacks));
  }
  if (state.milli_cpus_free < ledger.demand(*demand).milli_cpus) {
    const auto holds = [&job](const Job& other) {
      return other.spec.request.cpus > 0 && other.id != job.id;
    };
    why.emplace_back(blocker::Cpus{job.spec.request.cpus,
                                   static_cast<int>(state.milli_cpus_free / 1000),
                                   holders(index, part.node, now, holds),
                                   node_shown(index, *node)});
  }
}

/// It goes on where it stands: who wants it to stand, or what it has there counts, and who goes
/// before it.
std::vector<Blocker> explain_suspended(Index& index, const Job& job, Now now) {
  if (const std::string& by = std::get<Running>(job.state).suspended_by; !by.empty()) {
    return {blocker::Suspended{by}};
  }
  std::vector<Blocker> why;
  for (const Allocation& part : allocations_of(*attempt_of(job))) {
    explain_suspended_on(index, job, part, now, why);
  }
  if (!why.empty()) return why;
  if (auto ahead = explain_order(index, job, now)) why.push_back(*ahead);
  return why;
}

/// Counts who waits for what, by the indexes: each waiting job stands in one of them, or waits for
/// others.
class PendingCount {
 public:
  explicit PendingCount(const Index& index) : index_(index) {}

  PendingReasons count() {
    std::size_t told = 0;
    const auto tell = [&](BlockerKind kind, std::size_t jobs) {
      of(kind) += jobs;
      told += jobs;
    };
    tell(BlockerKind::BeginTime, index_.begin_later.size());
    tell(BlockerKind::LaunchBackoff, index_.backoff.size());
    for (const auto& [key, group] : index_.groups) {
      tell(BlockerKind::GroupLimit, group.parked.size());
    }
    for (const auto& [shape, lines] : index_.ready) {
      for (const auto& [kind, line] : lines) told += line.jobs.size();
      count_ready(shape, lines);
    }
    of(BlockerKind::Dependency) = index_.in(Status::Queued).size() - told;
    of(BlockerKind::OnHold) = index_.in(Status::Hold).size();
    return reasons_;
  }

 private:
  static constexpr std::size_t kMostLooks = 4096;  ///< at a node

  std::size_t& of(BlockerKind kind) { return reasons_.by_kind.at(static_cast<std::size_t>(kind)); }

  /// Jobs that may start as soon as there is room; all of a shape lack the same.
  void count_ready(const Shape& shape, const std::map<Kind, Line>& lines) {
    looks_ += static_cast<std::size_t>(index_.ledger.size());
    const bool is_looked_at = looks_ <= kMostLooks;
    std::optional<BlockerKind> lack;
    if (is_looked_at) {
      const Request asks = first_of(lines.begin()->second).request;
      lack = first_lack(index_, shape.demand, asks);
    }
    for (const auto& [kind, line] : lines) {
      const std::size_t jobs = line.jobs.size();
      if (index_.gangs.start(shape.gang) != GangStart::Alone) {
        of(BlockerKind::Gang) += jobs;
      } else if (!is_looked_at) {
        reasons_.others += jobs;
      } else if (const JobSpec& spec = first_of(line); index_.is_at_user_limit(spec)) {
        of(spec.request.gpus > 0 ? BlockerKind::GpuLimit : BlockerKind::UserLimit) += jobs;
      } else {
        of(lack.value_or(BlockerKind::Priority)) += jobs;
      }
    }
  }

  [[nodiscard]] const JobSpec& first_of(const Line& line) const {
    return index_.find(line.jobs.front().id)->spec;
  }

  const Index& index_;
  PendingReasons reasons_;
  std::size_t looks_ = 0;
};

/// Jobs of a gang wait for each other, and are at the limit of their user together.
void explain_gang(const Index& index, const Job& job, Now now, std::vector<Blocker>& why) {
  const Gang* gang = index.gangs.find(job.id);
  if (gang == nullptr || gang->start() == GangStart::Alone) return;
  const std::uint32_t uid = job.spec.user.uid;
  if (const auto limit = index.gpu_limit(uid, {}); limit && index.is_at_limit(job)) {
    const GpuNeed need{uid, index.parts_to_start(job), index.fair.held(uid)};
    why.emplace_back(explain_gpu_limit(index, need, *limit, now));
  }
  const bool is_complete = gang->start() == GangStart::Together;
  why.emplace_back(
      blocker::Gang{gang->needed(), gang->waiting.size(), is_complete ? gang->room : std::nullopt});
}

void explain_user_limit(const Index& index,
                        const JobSpec& spec,
                        Now now,
                        std::vector<Blocker>& why) {
  if (index.is_at_user_limit(spec)) why.push_back(user_limit_of(index, spec, now));
}

}  // namespace

Blocker user_limit_of(const Index& index, const JobSpec& spec, Now now, std::size_t more) {
  const auto limit = index.gpu_limit(spec.user.uid, spec.user.name);
  if (!limit || spec.request.gpus == 0) {
    return blocker::UserLimit{index.policy.max_unreserved_per_user};
  }
  const std::int64_t parts = gpu_parts_of(spec.request);
  const std::int64_t held =
      index.fair.held(spec.user.uid) + parts * static_cast<std::int64_t>(more);
  return explain_gpu_limit(index, {spec.user.uid, parts, held}, *limit, now);
}

PendingReasons State::pending_reasons() const { return PendingCount(*index_).count(); }

std::vector<Blocker> State::blockers(JobId id, Now now) const {
  Index& index = *index_;
  std::vector<Blocker> why;
  const Job* job = index.find(id);
  if (job != nullptr && status_of(*job) == Status::Suspended) {
    return explain_suspended(index, *job, now);
  }
  if (job == nullptr || !is_pending(*job)) return why;
  if (const auto* held = std::get_if<Held>(&job->state))
    why.emplace_back(blocker::OnHold{held->why});
  explain_gates(index, job->spec, index.dependencies.state(id), now, why);
  if (const auto* queued = std::get_if<Queued>(&job->state);
      queued != nullptr && queued->not_before && *queued->not_before > index.lived_at(now.mono) &&
      !waits_for_node(index, id)) {
    why.emplace_back(blocker::LaunchBackoff{
        queued->requeues, *queued->not_before - index.lived_at(now.mono), queued->why});
  }
  if (const Group* group = index.group(*job);
      group != nullptr && group->parked.contains(index.key_of(*job))) {
    why.emplace_back(explain_group(index, job->spec, group->limit, now));
  }
  explain_gang(index, *job, now, why);
  if (index.gang_to_start(*job) == nullptr) explain_user_limit(index, job->spec, now, why);
  const bool stands_in_queue = why.empty();
  if (auto leaving = leaving_for(index, *job); !leaving.empty()) {
    why.emplace_back(blocker::Preemption{std::move(leaving)});
  }
  explain_resources(index, job->spec, now, why);
  if (stands_in_queue) {
    if (auto ahead = explain_order(index, *job, now)) why.push_back(*ahead);
  }
  return why;
}

std::optional<blocker::Priority> State::ahead_of(JobId id, Now now) const {
  const Job* job = index_->find(id);
  if (job == nullptr || !is_pending(*job)) return std::nullopt;
  return explain_order(*index_, *job, now);
}

Result<Preview> State::preview(const JobSpec& spec, Now now, const JobSight& sight) const {
  Index& index = *index_;
  GF_CHECK(check_dependencies(index, spec.dependencies, 0, sight));
  GF_CHECK(check_request(index, spec.request));
  GF_CHECK(check_gpu_quota(index.policy.gpu_quota, spec));
  const auto end_of = [&index](JobId id) { return index.end_of(id); };
  const DependencyState state = DependencyGraph::state_of(spec.dependencies, end_of);
  Preview preview{.cancelled = is_hopeless(spec.dependencies, state)};
  if (spec.hold) preview.blockers.emplace_back(blocker::OnHold{});
  explain_gates(index, spec, state, now, preview.blockers);
  if (index.group_limit_left(spec) == 0) {
    preview.blockers.emplace_back(explain_group(index, spec, spec.max_concurrent, now));
  }
  explain_user_limit(index, spec, now, preview.blockers);
  // A demand that no job has is known to the ledger meanwhile; nothing that decides changes.
  const PassingDemand passing(index, placement::demand_of(spec));
  const bool stands_in_queue = preview.blockers.empty();
  explain_resources(index, spec, now, preview.blockers);
  const bool has_room = preview.blockers.empty();
  const bool is_first = !index.find_awaited().head && !index.find_awaited().first;
  if (!stands_in_queue || (has_room && is_first)) return preview;
  Job job;
  job.id = next_id();
  job.submitted = now.wall;
  job.lived = index.lived_at(now.mono);
  job.spec = spec;
  const auto first = has_room ? std::nullopt : explain_order(index, job, now);
  if (first) preview.blockers.push_back(*first);
  const QueueTurn turn = queue_turn_of(index, job, now);
  preview.start = turn.start;
  preview.ahead = turn.ahead;
  return preview;
}

}  // namespace gflow::engine
