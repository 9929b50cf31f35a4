// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstdint>

#include "engine/index.h"
#include "engine/order.h"
#include "engine/yield.h"

/// Where jobs stand in the queue: order.h and yield.h asked about the jobs of the index.
namespace gflow::engine {

using std::chrono::seconds;

namespace {

/// The clock places are on: the calendar's, since it goes on over restarts.
seconds on_clock(WallTime time) { return std::chrono::floor<seconds>(time.time_since_epoch()); }

seconds ready_at(const Job& job) {
  return on_clock(job.spec.begin ? std::max(*job.spec.begin, job.submitted) : job.submitted);
}

}  // namespace

seconds Index::ran(const Job& job) const {
  return is_active(job) ? std::chrono::floor<seconds>(run_time_of(job, now.mono)) : seconds::zero();
}

OrderRules Index::order_rules() const {
  OrderRules rules = policy.order;
  rules.gpus = gpu_scale;
  return rules;
}

void Index::count_gpus() {
  const int count = static_cast<int>(std::bit_floor(static_cast<unsigned>(totals().gpus)));
  if (count == gpu_scale || count == 0) return;
  gpu_scale = count;
  incumbents.clear();
  rank_anew();
}

Contender Index::contender_of(const Job& job) const {
  const Request& request = job.spec.request;
  return {.ready = ready_at(job),
          .served = std::chrono::floor<seconds>(job.served) + ran(job),
          .like = {.limit_class = limit_class(job.spec.time_limit),
                   .parts = std::int64_t{request.gpus} * request.share.parts * request.nodes,
                   .uid = job.spec.user.uid,
                   .name = program_of(job.spec.command)},
          .limit = job.spec.time_limit,
          .stoppable = is_stoppable(job),
          .standing = fair.standing(job.spec.user.uid, on_clock(now.wall))};
}

QueueKey Index::key_of(const Job& job) const {
  const auto rank = ranks.find(job.id);
  return {job.spec.priority, rank == ranks.end() ? 0 : rank->second.value, job.id};
}

QueueKey Index::place_of(const Job& job) {
  if (policy.order.order == Order::Submission) return {job.spec.priority, 0, job.id};
  const auto [at, added] = incumbents.try_emplace(job.id);
  Incumbent& known = at->second;
  if (added) known.contender = contender_of(job);
  Contender& contender = known.contender;
  contender.served = std::chrono::floor<seconds>(job.served) + ran(job);
  contender.standing = fair.standing(job.spec.user.uid, on_clock(now.wall));
  if (const int step = service_step(contender.served); step != known.step) {
    known.step = step;
    known.allowance =
        allowance(order_rules(), expected_hold(history, contender), contender.stoppable);
  }
  const Place place =
      engine::place_of(policy.order, contender, known.allowance, on_clock(now.wall));
  return {job.spec.priority, rank_of(place), job.id};
}

/// Gives a job that enters the queue its rank, and says when it has to be asked for again.
void Index::rank(const Job& job) {
  if (policy.order.order == Order::Submission) return;
  const auto [at, added] = ranks.try_emplace(job.id);
  if (added) {
    const Contender contender = contender_of(job);
    const seconds clock = on_clock(now.wall);
    at->second.value = rank_of(engine::place_of(order_rules(), history, contender, clock));
    const auto guarded = guarded_at(policy.order, contender, clock);
    if (guarded) at->second.guarded = WallTime(*guarded);
  }
  if (at->second.guarded) guards.emplace(*at->second.guarded, job.id);
}

void Index::unrank(const Job& job) {
  const auto at = ranks.find(job.id);
  if (at == ranks.end()) return;
  if (at->second.guarded) guards.erase({*at->second.guarded, job.id});
  ranks.erase(at);
}

/// All that wait, by another order.
void Index::rank_anew() {
  std::vector<JobId> waiting;
  for (const JobId id : in(Status::Queued)) waiting.push_back(id);
  for (const JobId id : waiting) relink(id);
}

/// A job that can be stopped keeps none where all that runs can be stopped, too: it gets its room
/// as its place comes before theirs, and to empty GPUs for it would only be waste.
bool Index::keeps_place(const Job& job) const {
  if (policy.order.order == Order::Submission) return true;
  if (is_stoppable(job) && all_stoppable()) return false;
  if (job.spec.request.nodes > 1) return true;
  const seconds served = std::chrono::floor<seconds>(job.served);
  return on_clock(now.wall) - ready_at(job) - served >= policy.keep_after;
}

bool Index::is_stoppable(const Job& job) const {
  return policy.preempt && job.spec.preemption == Preemption::Requeue;
}

bool Index::all_stoppable() const { return preemptible.size() == count(kActive); }

std::optional<seconds> Index::next_look() const {
  if (policy.order.order == Order::Submission || !policy.preempt) return std::nullopt;
  std::optional<seconds> soonest;
  for (const JobId id : preemptible) {
    const Job& job = *find(id);
    const seconds served = std::chrono::floor<seconds>(job.served) + ran(job);
    const seconds look = engine::next_look(policy.yield, ran(job), served);
    soonest = std::min(soonest.value_or(look), look);
  }
  return soonest;
}

void Index::learn(const Job& job, const Outcome& outcome, WallTime at) {
  peaks.add(job.spec.user.uid, job.spec.command, outcome.peak_gpu_memory);
  if (outcome.reason == EndReason::NotStarted) return;
  const bool more = status_for(outcome) == Status::Lost || outcome.reason == EndReason::Preempted;
  const Contender contender = contender_of(job);
  const seconds before = std::chrono::floor<seconds>(job.served);
  const seconds took = std::chrono::floor<seconds>(outcome.run_time);
  history.saw(contender.like, before, before + took, more ? Seen::Stopped : Seen::Ended);
  fair.charge(job.spec.user.uid, contender.like.parts, took, on_clock(at));
}

}  // namespace gflow::engine
