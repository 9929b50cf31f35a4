// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "core/stop.h"
#include "engine/index.h"
#include "engine/order.h"
#include "engine/preemption_rules.h"

/// Where jobs stand in the queue: order.h and preemption_rules.h asked about the jobs of the index.
namespace gflow::engine {

using std::chrono::seconds;

namespace {

/// Places are on the time that gflow sees pass: it goes on over restarts, and nobody sets it.
seconds on_clock(std::chrono::milliseconds lived) { return std::chrono::floor<seconds>(lived); }

/// How long after its submission it was to begin is what the calendar said then.
seconds ready_at(const Job& job) {
  const auto later =
      job.spec.begin ? *job.spec.begin - job.submitted : std::chrono::milliseconds(0);
  return on_clock(job.lived + std::max(later, std::chrono::milliseconds(0)));
}

/// What tells nothing of a run: the job, or its last attempt, never ran.
bool taught_nothing(const Ended& end) {
  const bool unstarted = end.outcome.reason == EndReason::NotStarted ||
                         end.outcome.reason == EndReason::LaunchFailed ||
                         end.outcome.reason == EndReason::Cancelled ||
                         end.outcome.reason == EndReason::DependencyFailed;
  return !end.attempt || (unstarted && end.outcome.run_time.count() == 0);
}

/// How long a job that ended ran in all, and whether that was all it had to do.
struct Run {
  seconds took{0};
  bool over = false;
};
Run run_of(const Job& job) {
  const auto& end = std::get<Ended>(job.state);
  if (taught_nothing(end)) return {std::chrono::floor<seconds>(job.served), false};
  return {std::chrono::floor<seconds>(job.served + end.outcome.run_time), true};
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
  int count = static_cast<int>(std::bit_floor(static_cast<unsigned>(totals().gpus)));
  if (count == 0) count = OrderRules::kReferenceGpus;
  if (count == gpu_scale) return;
  gpu_scale = count;
  ++knowledge;
}

Contender Index::contender_of(const Job& job) const {
  return {.ready = ready_at(job),
          .served = std::chrono::floor<seconds>(job.served) + ran(job),
          .signature = {.limit_class = limit_class(job.spec.time_limit),
                        .parts = gpu_parts_of(job.spec.request),
                        .uid = job.spec.user.uid,
                        .name = program_of(job.spec.command)},
          .limit = job.spec.time_limit,
          .stoppable = is_stoppable(job)};
}

QueueKey Index::key_of(const Job& job) const {
  if (policy.order.order == Order::Submission) return {job.spec.priority, 0, job.id};
  const seconds served =
      is_stoppable(job) ? std::chrono::floor<seconds>(job.served) : seconds::zero();
  return {job.spec.priority, (ready_at(job) + served).count(), job.id};
}

Kind Index::kind_of(const Job& job) const {
  const bool stoppable = is_stoppable(job) && policy.order.order == Order::Learned;
  return {.priority = job.spec.priority,
          .uid = job.spec.user.uid,
          .stoppable = stoppable,
          .step = stoppable ? service_step(std::chrono::floor<seconds>(job.served)) : 0,
          .limit = job.spec.time_limit,
          .program = program_of(job.spec.command)};
}

void Index::expect(Line& line) const {
  if (line.knowledge == knowledge) return;
  line.knowledge = knowledge;
  Contender& contender = line.contender;
  const std::int64_t hold = expected_hold(history, contender);
  line.allowance = allowance(order_rules(), hold, contender.stoppable);
  line.run_time = expected_run(contender);
}

bool Index::knows_like(const Signature& signature) const {
  constexpr std::int64_t kEnough = 3;
  return history.jobs_like(signature) >= kEnough;
}

/// For ever, if nothing is known and nothing promised.
seconds Index::expected_run(const Contender& contender) const {
  const seconds most = contender.limit.value_or(std::chrono::years(100));
  if (!knows_like(contender.signature)) return most;
  return std::min(history.run_time(contender.signature), most);
}

Passer Index::passer_of(const Job& job) {
  const Contender contender = contender_of(job);
  return {.shape = shape_of(job),
          .priority = job.spec.priority,
          .run_time = expected_run(contender),
          .uid = contender.signature.uid,
          .parts = contender.signature.parts};
}

/// An active job as it is now, with what is known of its like.
const Index::Incumbent& Index::incumbent(const Job& job) const {
  const auto [at, added] = incumbents.try_emplace(job.id);
  Incumbent& known = at->second;
  if (added) known.contender = contender_of(job);
  known.contender.served = std::chrono::floor<seconds>(job.served) + ran(job);
  known.contender.penalty = fair.penalty(job.spec.user.uid);
  const int step = service_step(known.contender.served);
  if (added || known.knowledge != knowledge)
    known.chances = history.chances(known.contender.signature);
  if (added || known.knowledge != knowledge || known.step != step) {
    const bool stoppable = known.contender.stoppable;
    known.allowance = allowance(order_rules(), expected_hold(history, known.contender), stoppable);
  }
  known.step = step;
  known.knowledge = knowledge;
  return known;
}

/// Since when it is being stopped no job says: since this was asked first. One that is there long
/// after its grace (in a call of the kernel that does not return, by a finalizer of its pod) has no
/// end that is known.
std::optional<MonoTime> Index::promised_end(const Job& job) const {
  constexpr seconds kLate{30};
  const std::optional<MonoTime> latest = latest_end(job);
  if (stop_of(job) == nullptr) return latest;
  const MonoTime told = stopping.try_emplace(job.id, now.mono).first->second;
  const MonoTime stopped = told + job.spec.grace;
  if (now.mono > stopped + std::max(kLate, job.spec.grace)) return latest;
  return std::min(stopped, latest.value_or(stopped));
}

MonoTime Index::expected_end(const Job& job) const {
  if (const auto promised = promised_end(job)) return *promised;
  return likely_end(job);
}

MonoTime Index::likely_end(const Job& job) const {
  const Incumbent& known = incumbent(job);
  const seconds served = known.contender.stoppable ? known.contender.served : ran(job);
  return now.mono + time_left(known.chances, served);
}

namespace {

/// Of a job that can be stopped the key holds what it was served, too.
Waiter waiter_of(const Front& front) {
  return {
      .ready = seconds(front.first.rank), .penalty = *front.penalty, .stoppable = front.stoppable};
}

}  // namespace

QueueKey Index::place_of(const Front& front) const {
  const QueueKey& first = front.first;
  if (policy.order.order == Order::Submission) return first;
  const Place place =
      engine::place_of(policy.order, waiter_of(front), front.allowance, on_clock(lived()));
  return {first.priority, rank_of(place), first.id};
}

void Index::expect_anew() {
  if (std::exchange(fronts_knowledge, knowledge) == knowledge) return;
  for (Front& front : fronts.all()) {
    expect(*front.line);
    front.allowance = front.line->allowance;
  }
}

QueueKey Index::place_of(const Job& job) const {
  if (policy.order.order == Order::Submission) return {job.spec.priority, 0, job.id};
  if (is_active(job)) {
    const Incumbent& known = incumbent(job);
    const Place place = engine::place_of(
        policy.order, known.contender.waiter(), known.allowance, on_clock(lived()));
    return {job.spec.priority, rank_of(place), job.id};
  }
  Contender contender = contender_of(job);
  contender.penalty = fair.penalty(contender.signature.uid);
  const Place place = engine::place_of(order_rules(), history, contender, on_clock(lived()));
  return {job.spec.priority, rank_of(place), job.id};
}

std::optional<MonoTime> Index::next_guard() const {
  if (policy.order.order == Order::Submission) return std::nullopt;
  std::optional<seconds> soonest;
  for (const Front& front : fronts.all()) {
    const auto at = guarded_at(policy.order, waiter_of(front), on_clock(lived()));
    if (at && (!soonest || *at < *soonest)) soonest = *at;
  }
  return soonest ? std::optional(mono_at(*soonest)) : std::nullopt;
}

/// A job that can be stopped keeps none where all that runs can be stopped, too: it gets its room
/// as its place comes before theirs, and to empty GPUs for it would only be waste.
bool Index::keeps_reservation(const Job& job) const {
  if (policy.order.order == Order::Submission) return true;
  if (is_stoppable(job) && all_stoppable()) return false;
  return waited(job) >= policy.keep_after;
}

bool Index::is_room_made(JobId id) const {
  const Job* job = sparing.contains(id) ? find(id) : nullptr;
  const auto* queued = job == nullptr ? nullptr : std::get_if<Queued>(&job->state);
  return queued != nullptr && !queued->victims.empty();
}

bool Index::is_overdue(const Job& job) const { return waited(job) >= policy.order.guard; }

bool Index::is_patient(const Job& job) const {
  const bool submission = policy.order.order == Order::Submission;
  const seconds kept_after = submission ? seconds::zero() : policy.keep_after;
  return waited(job) <= kept_after + policy.backfill_patience;
}

seconds Index::waited(const Job& job) const {
  return on_clock(lived()) - ready_at(job) - std::chrono::floor<seconds>(job.served);
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
    const seconds look = engine::next_look(policy.preemption, ran(job), served);
    soonest = std::min(soonest.value_or(look), look);
  }
  return soonest;
}

void Index::carry(const Job& job, int times) {
  fair.carry(job.spec.user.uid, job.served_gpu_time, times);
}

/// What waits stands by the policy: taken out before it changes, put back after.
void Index::unlink_waiting() {
  for (const JobId id : in(Status::Queued)) {
    unlink_queued(*find(id));
  }
}

void Index::link_waiting() {
  for (const JobId id : in(Status::Queued)) {
    const Job& job = *find(id);
    link_queued(job, std::get<Queued>(job.state));
  }
}

void Index::charge(const Job& job) {
  const auto& end = std::get<Ended>(job.state);
  fair.charge(job.spec.user.uid, gpu_time_of(job, end), on_clock(end.lived));
}

std::optional<seconds> Index::took(const Job& ended) {
  const Run run = run_of(ended);
  return run.over ? std::optional(run.took) : std::nullopt;
}

/// What ended is learned at the next full ten minutes, by when it ended: so that it does not matter
/// whether the daemon was restarted, that places stand still in between, and that what is known is
/// asked for once in a while only.
void Index::learn() {
  constexpr std::chrono::minutes kBetween(10);
  const std::chrono::milliseconds until = lived() / kBetween * kBetween;
  if (until <= learned_until) return;
  const std::set<EndedJobs::Age>& by_age = ended.by_age();
  for (auto at = by_age.lower_bound({learned_until, JobId(0)});
       at != by_age.end() && at->first < until;
       ++at) {
    const Job& job = *find(at->second);
    const Run run = run_of(job);
    if (!run.over && run.took == seconds::zero()) continue;
    history.record(
        contender_of(job).signature, seconds(0), run.took, run.over ? Seen::Ended : Seen::Stopped);
  }
  learned_until = until;
  ++knowledge;
}

}  // namespace gflow::engine
