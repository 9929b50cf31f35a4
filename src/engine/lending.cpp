// SPDX-License-Identifier: Apache-2.0
#include "engine/lending.h"

#include <algorithm>

#include "core/stop.h"
#include "engine/backfill.h"
#include "engine/parking.h"
#include "engine/step_internal.h"

/// A job that leaves its GPU idle lends it: its GPU memory is parked, and it runs on. Who borrows
/// is queued again as soon as a program of the first wants the GPU.
namespace gflow::engine {

using placement::Placement;
using placement::Presence;

namespace {

/// Of one that does not lend now: whether all but time is as it has to be.
bool could_lend(const Job& job) {
  const auto* running = std::get_if<Running>(&job.state);
  return running != nullptr && running->watches && !running->lends && !running->stop &&
         !running->move && !running->suspended && running->parked.how == Parking::None;
}

}  // namespace

bool watches(const Job& job) {
  const auto* running = std::get_if<Running>(&job.state);
  return running != nullptr && running->watches;
}

bool is_lending(const Job& job) {
  const auto* running = std::get_if<Running>(&job.state);
  return running != nullptr && running->lends;
}

bool are_lent(const Index& index, const std::vector<Placement>& there) {
  return std::ranges::any_of(there, [&index](const Placement& one) {
    const auto& devices = index.ledger.state(one.node).devices;
    return std::ranges::any_of(one.devices, [&devices](int gpu) {
      const auto at = static_cast<std::size_t>(gpu);
      return at < devices.size() && devices[at].lent > 0;
    });
  });
}

bool borrows(Index& index, const Job& job) {
  const Attempt* attempt = is_active(job) ? attempt_of(job) : nullptr;
  return attempt != nullptr && attempt->borrows && are_lent(index, index.placements_of(*attempt));
}

/// Who borrows does not lend to a third.
bool may_lend(Index& index, const Job& job) {
  const auto least = index.policy.lend_idle_after;
  if (least == std::chrono::seconds(0) || !could_lend(job)) return false;
  const auto since = index.idle_since(job);
  if (!since || index.now.mono - *since < least || borrows(index, job)) return false;
  const auto node = index.ledger.find(attempt_of(job)->allocation.node);
  return node && can_be_parked(index, job, index.ledger.state(*node).memory_free);
}

bool Index::note_idle(const Machine& machine) {
  std::map<std::pair<std::string, int>, MonoTime> seen;
  bool is_new = false;
  for (const Device& device : machine.devices) {
    if (device.utilization_percent != 0) continue;
    const std::pair key(machine.name, device.index);
    const auto known = idle.find(key);
    is_new = is_new || known == idle.end();
    seen.emplace(key, known == idle.end() ? now.mono : known->second);
  }
  std::erase_if(idle, [&machine](const auto& one) { return one.first.first == machine.name; });
  idle.merge(seen);
  return is_new && !lenders.empty() && policy.lend_idle_after > std::chrono::seconds(0);
}

void Index::note_use(const Attempt& attempt) {
  for (const Allocation& part : allocations_of(attempt)) {
    for (const int gpu : part.gpus) {
      if (const auto at = idle.find({part.node, gpu}); at != idle.end()) at->second = now.mono;
    }
  }
}

std::optional<MonoTime> Index::idle_since(const Job& job) const {
  if (!is_active(job)) return std::nullopt;
  const Attempt& attempt = *attempt_of(job);
  std::optional<MonoTime> since;
  for (const Allocation& part : allocations_of(attempt)) {
    for (const int gpu : part.gpus) {
      const auto at = idle.find({part.node, gpu});
      if (at == idle.end()) return std::nullopt;
      since = std::max(since.value_or(at->second), at->second);
    }
  }
  if (since && attempt.boot_id == boot_id) since = std::max(*since, attempt.started_mono);
  return since;
}

std::optional<MonoTime> Index::next_lend() const {
  std::optional<MonoTime> next;
  if (policy.lend_idle_after == std::chrono::seconds(0)) return next;
  for (const JobId id : lenders) {
    const Job& job = *find(id);
    const auto since = could_lend(job) ? idle_since(job) : std::nullopt;
    if (!since || *since + policy.lend_idle_after <= now.mono) continue;
    next = std::min(next.value_or(MonoTime::max()), *since + policy.lend_idle_after);
  }
  return next;
}

bool Index::may_make_room() const {
  return (policy.preempt && !preemptible.empty()) || !lenders.empty();
}

/// Its GPU memory is parked from here on, and the GPU is free for who borrows once that is done.
void Step::lend(JobId id) {
  const Memory most = copy_of(index_, *index_.find(id));
  index_.change(id, [&most](Job& job) {
    auto& running = std::get<Running>(job.state);
    running.lends = true;
    running.parked = {.how = Parking::Begun, .memory = most};
  });
  saved(id, Happening::Lent);
  index_.fronts.open_all();
  effects_.emplace_back(effect::Suspend{id, attempt_of(*index_.find(id))->number});
}

void Step::take(const event::GpuWanted& event) {
  const Job* job = under_way(index_, event.job, event.attempt);
  const auto* running = job == nullptr ? nullptr : std::get_if<Running>(&job->state);
  if (running == nullptr || !running->lends || running->suspended || running->stop) return;
  index_.note_use(running->attempt);
  index_.change(event.job, [this](Job& changed) {
    std::get<Running>(changed.state).suspended = index_.now.mono;
  });
  saved(event.job, Happening::Suspended);
}

/// It has its GPU memory, where that could not be taken or was given back meanwhile, or it is on
/// its way, or parked.
void Step::note_lent(const Job& job, const ParkedMemory& parked) {
  const JobId id = job.id;
  const bool is_back = parked.how == Parking::None;
  const Running& before = std::get<Running>(job.state);
  const bool was_suspended = before.suspended.has_value() && before.suspended_by.empty();
  index_.change(id, [&](Job& changed) {
    auto& running = std::get<Running>(changed.state);
    running.parked = {.how = parked.how, .memory = parked.memory};
    if (!is_back) return;
    running.lends = false;
    if (running.suspended_by.empty()) running.suspended.reset();
    // What was found of it holds for as long as it runs.
    if (!parked.refused.empty()) running.watches = false;
  });
  saved(id, is_back && was_suspended ? Happening::Resumed : Happening::Nothing);
  if (is_back) makes_no_room(id);
}

/// Those to whom the GPU was lent are told to make room, however they are by now, also suspended:
/// they allowed it when they were given it.
void Step::reclaim(JobId owner) {
  std::set<JobId> borrowers;
  for (const Placement& there : index_.placements_of(*attempt_of(*index_.find(owner)))) {
    for (const int gpu : there.devices) {
      const auto on = index_.holders.find({there.node, gpu});
      if (on != index_.holders.end()) borrowers.insert(on->second.begin(), on->second.end());
    }
  }
  borrowers.erase(owner);
  for (const JobId id : borrowers) {
    const Job& borrower = *index_.find(id);
    if (!borrows(index_, borrower) || stop_of(borrower) != nullptr) continue;
    preempt(id, owner);
    if (candidates_) candidates_->leaving.push_back(id);
  }
}

bool State::could_borrow(const JobSpec& spec) const {
  Index& index = *index_;
  const bool might =
      spec.request.gpus > 0 && spec.request.nodes == 1 && spec.preemption != Preemption::Requeue;
  if (!might || index.lenders.empty()) return false;
  JobSpec borrower = spec;
  borrower.preemption = Preemption::Requeue;
  // A demand that no job has is known to the ledger meanwhile; nothing that decides changes.
  const PassingDemand passing(index, placement::demand_of(borrower));
  std::map<placement::NodeIndex, placement::NodeState> nodes;
  for (const JobId id : index.lenders) {
    const Job& job = *index.find(id);
    const Placement there = index.placements_of(*attempt_of(job)).front();
    auto& state = nodes.try_emplace(there.node, index.ledger.state(there.node)).first->second;
    if (!may_lend(index, job)) continue;
    without(index, job, there.node, state);
    index.ledger.take_on(state, index.demand_of(job.spec), there.devices, Presence::Lent);
  }
  return std::ranges::any_of(nodes, [&](const auto& node) {
    return index.ledger.fits_state(passing.index(), node.first, node.second);
  });
}

std::optional<std::chrono::seconds> State::gpu_idle(const Job& job, Now now) const {
  if (status_of(job) != Status::Running || is_lending(job)) return std::nullopt;
  const auto since = index_->idle_since(job);
  if (!since) return std::nullopt;
  return std::chrono::floor<std::chrono::seconds>(std::max(now.mono, *since) - *since);
}

}  // namespace gflow::engine
