// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "engine/backfill.h"
#include "engine/lending.h"
#include "engine/parking.h"
#include "engine/preemption_plan.h"
#include "engine/step_internal.h"

/// Making room: running jobs stop, or are suspended and go on later.
namespace gflow::engine {

using placement::NodeState;
using placement::Presence;

namespace {

/// How long it takes to park a job, or to bring back what was: of 80 GiB.
constexpr std::chrono::seconds kParkingTakes{15};

/// Whether one that waits may have a GPU that another would lend.
bool might_borrow(const Index& index, const PreemptionCandidates& candidates) {
  return std::ranges::any_of(candidates.able, &PreemptionCandidate::lends) &&
         std::ranges::any_of(index.fronts.all(), [&index](const Front& front) {
           return index.ledger.demand(index.fronts.shape(front.shape).demand).borrows;
         });
}

}  // namespace

/// Whether for any that waits room might be made, or is being made: asked of the places alone,
/// where nothing has room.
bool Step::might_preempt() {
  if (!index_.may_make_room() || index_.ready.empty()) return false;
  if (!candidates_) candidates_ = preemption_candidates(index_);
  if (!candidates_->leaving.empty()) return true;
  if (might_borrow(index_, *candidates_)) return true;
  std::optional<int> lowest;
  std::map<int, std::int64_t> last;  // by priority, of those that may give way to one of it
  for (const PreemptionCandidate& one : candidates_->able) {
    if (!one.stops) continue;
    lowest = std::min(lowest.value_or(one.place.priority), one.place.priority);
    if (!one.settled || index_.policy.order.order == Order::Submission) continue;
    const auto [at, added] = last.emplace(one.place.priority, one.place.rank);
    if (!added) at->second = std::max(at->second, one.place.rank);
  }
  if (!lowest) return false;
  index_.expect_anew();
  return std::ranges::any_of(index_.fronts.all(), [&](const Front& front) {
    const QueueKey waiting = index_.place_of(front);
    if (waiting.priority > *lowest) return true;
    const auto same = last.find(waiting.priority);
    return same != last.end() && gives_way(index_.policy.preemption, same->second, waiting.rank);
  });
}

/// Makes room for a job that does not fit, if lesser jobs can. True if it can be had at once;
/// else the nodes are kept for it until those who stop there are gone. Nobody is stopped for a job
/// that may not pass one whose place is kept, nor again for one that did not take its chance.
bool Step::preempt_for(JobId id, Places& places) {
  if (!index_.may_make_room()) return false;
  if (index_.sparing.contains(id)) return false;
  if (!candidates_) candidates_ = preemption_candidates(index_);
  const Passer passer = index_.passer_of(*index_.find(id));
  const std::vector<placement::NodeIndex> nodes = places.nodes_kept(passer);
  const auto plan = plan_preemption(index_, *candidates_, id, {nodes.begin(), nodes.end()});
  if (!plan || !places.would_let_pass(index_, passer, plan->nodes)) return false;
  const auto& made = std::get<Queued>(index_.find(id)->state).preemption_at;
  const bool lately = made && index_.lived() - *made < index_.policy.preemption.quantum;
  if (lately && !plan->victims.empty()) return false;
  const auto [told, parking] = tell_victims(*plan, id);
  std::vector<JobId> stopping = plan->stopping;
  stopping.insert(stopping.end(), told.begin(), told.end());
  const auto demand = index_.demand_of(index_.find(id)->spec);
  // Where there is room beside what they keep of their GPUs for now, that is not waited for.
  const bool is_there = stopping.empty() && std::ranges::all_of(plan->nodes, [&](const auto& node) {
                          return index_.ledger.fits(demand, node.first);
                        });
  if (!is_there) stopping.insert(stopping.end(), parking.begin(), parking.end());
  // One that stops on several nodes is waited for once.
  std::ranges::sort(stopping);
  stopping.erase(std::ranges::unique(stopping).begin(), stopping.end());
  note_told(id, plan->victims.size());
  remember_preemption(id, stopping, !plan->victims.empty());
  if (stopping.empty()) return true;
  Reservation kept;
  kept.is_being_made = true;
  kept.head = {id, index_.now.mono + longest_to_leave(stopping), true};
  for (const auto& [node, state] : plan->nodes) kept.nodes.emplace(node, KeptNode{state, {demand}});
  places.keep(std::move(kept));
  return false;
}

/// All of these are among the leaving from now on.
Step::Told Step::tell_victims(const PreemptionPlan& plan, JobId by) {
  Told told;
  for (const JobId victim : plan.victims) {
    if (std::ranges::binary_search(plan.lending, victim)) {
      lend(victim);
      told.parking.push_back(victim);
      continue;
    }
    if (index_.find(victim)->spec.preemption == Preemption::Suspend) {
      suspend(victim, "");
      if (is_being_parked(*index_.find(victim))) told.parking.push_back(victim);
      continue;
    }
    preempt(victim, by);
    told.stopping.push_back(victim);
  }
  for (const auto* jobs : {&told.stopping, &told.parking}) {
    candidates_->leaving.insert(candidates_->leaving.end(), jobs->begin(), jobs->end());
  }
  return told;
}

std::chrono::seconds Step::longest_to_leave(const std::vector<JobId>& jobs) const {
  auto longest = std::chrono::seconds::zero();
  for (const JobId id : jobs) {
    const Job& job = *index_.find(id);
    longest = std::max(longest, is_being_parked(job) ? kParkingTakes : job.spec.grace);
  }
  return longest;
}

/// So many are told now to make room for it.
void Step::note_told(JobId id, std::size_t victims) {
  if (victims == 1) index_.several_stopped_for.erase(id);
  if (victims > 1) index_.several_stopped_for.insert(id);
}

/// For whom others are preempted is stored with the job, so that a restart does not do it once
/// more. No index goes by it.
void Step::remember_preemption(JobId id, const std::vector<JobId>& victims, bool told_now) {
  auto& queued = std::get<Queued>(index_.jobs.at(id).state);
  if (!told_now && queued.victims == victims) return;
  if (told_now) queued.preemption_at = index_.lived();
  queued.victims = victims;
  saved(id, Happening::Nothing);
}

/// It cannot take the room that is made for it any more: that is anyone's.
void Step::forget_preemption(JobId id) {
  if (!std::get<Queued>(index_.find(id)->state).victims.empty()) remember_preemption(id, {}, false);
}

void Step::preempt(JobId victim, JobId by) {
  const int signal = index_.find(victim)->spec.preempt_signal;
  stop(victim, Stop{EndReason::Preempted, index_.find(by)->spec.user, signal});
}

/// To make room, or by hand: then it may be suspended already. One that lends its GPU runs no more,
/// and wants it back when it is resumed.
void Step::suspend(JobId id, const std::string& by_hand_of) {
  const Job& known = *index_.find(id);
  const Running& before = std::get<Running>(known.state);
  const bool lends = before.lends;
  const bool stands = before.suspended && !lends;
  const bool is_coming_back = before.parked.how == Parking::Ending;
  const auto at = index_.ledger.find(attempt_of(known)->allocation.node);
  const bool parks =
      is_coming_back || (at && can_be_parked(index_, known, index_.ledger.state(*at).memory_free));
  const Memory most = copy_of(index_, known);
  index_.change(id, [&](Job& job) {
    auto& running = std::get<Running>(job.state);
    if (!stands) running.suspended = index_.now.mono;
    if (!stands && parks && !lends) running.parked = {.how = Parking::Begun, .memory = most};
    running.suspended_by = by_hand_of;
  });
  saved(id, stands ? Happening::Nothing : Happening::Suspended);
  if (stands) return;
  index_.fronts.open_all();  // what it computed with is there for all that were told there is none
  effects_.emplace_back(effect::Suspend{id, attempt_of(*index_.find(id))->number});
}

/// Those first who want back what they lent: it is theirs, whoever waits.
std::vector<JobId> Step::suspended_in_order() const {
  std::vector<std::pair<bool, QueueKey>> keys;
  for (const auto& [submitted, id] : index_.suspended) {
    const Job& job = *index_.find(id);
    keys.emplace_back(!is_lending(job), index_.place_of(job));
  }
  std::sort(keys.begin(), keys.end());
  std::vector<JobId> ids;
  for (const auto& [others, key] : keys) ids.push_back(key.id);
  return ids;
}

/// Lets suspended jobs go on, those before this place in the queue, or all that are left.
void Step::resume_before(const std::optional<QueueKey>& place,
                         std::vector<JobId>& suspended,
                         Places& places) {
  while (!suspended.empty()) {
    const Job& job = *index_.find(suspended.front());
    if (place && !is_lending(job) && *place < index_.place_of(job)) return;
    suspended.erase(suspended.begin());
    resume(job.id, places);
  }
}

void Step::resume(JobId id, Places& places) {
  const Job& job = *index_.find(id);
  const Running& running = std::get<Running>(job.state);
  // One that is told to stop is let go on by its supervisor, to clean up. Its compute is another's
  // by now: until it is gone it counts as suspended.
  if (running.stop || is_being_parked(job)) return;
  const Presence presence = presence_of(job);
  const auto placements = index_.placements_of(running.attempt);
  const auto demand = index_.demand_of(job.spec);
  for (const auto& placement : placements) {
    // After a restart nodes are not told of at once: who is ahead may have room there all the same.
    if (!index_.ledger.node(placement.node).ready) return;
    NodeState state = index_.ledger.state(placement.node);
    index_.ledger.give_back_on(state, demand, placement.devices, presence);
    if (!index_.ledger.can_go_on(demand, state, placement.devices, presence)) {
      if (running.lends) reclaim(id);
      return;
    }
  }
  Passer passer = index_.passer_of(job);
  passer.suspended = id;
  if (!running.lends && !places.let_pass(index_, passer, placements)) return;
  ++resumes_;
  const bool borrows = !running.lends && are_lent(index_, placements);
  index_.change(id, [this, borrows](Job& changed) {
    auto& state = std::get<Running>(changed.state);
    if (borrows) state.attempt.borrows = true;
    if (!state.lends) state.stood += index_.now.mono - *state.suspended;
    state.lends = false;
    state.suspended.reset();
    if (state.parked.how == Parking::Parked) state.parked.how = Parking::Ending;
  });
  saved(id, Happening::Resumed);
  effects_.emplace_back(effect::Resume{id, attempt_of(*index_.find(id))->number});
}

}  // namespace gflow::engine
