// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/kept_sentence.h"
#include "base/translate.h"
#include "core/stop.h"
#include "engine/step_internal.h"

namespace gflow::engine {
namespace {

/// Nobody measured how long an attempt ran whose supervisor was killed: until that was noticed.
Outcome with_run_time(Outcome outcome, const Job& job, Now now) {
  const bool measured = outcome.run_time > std::chrono::milliseconds(0);
  if (outcome.reason == EndReason::SupervisorDied && !measured) {
    outcome.run_time = run_time_of(job, now.mono);
  }
  return outcome;
}

/// By nobody, that is.
bool is_stopped_for_overuse(const Job& job) {
  const Stop* stopped = stop_of(job);
  return stopped != nullptr && stopped->reason == EndReason::Cancelled && stopped->by == User{};
}

std::string overuse_of(const Attempt& attempt) {
  return attempt.on_other_gpus ? kept<Kept::UsedOtherGpus>() : kept<Kept::UsedMoreMemory>();
}

/// What it ran for so far is remembered, and what it held: it may ask for something else next.
void note_served(Job& job, std::chrono::milliseconds run_time) {
  job.served += run_time;
  job.served_gpu_time += gpu_time_of(job.spec.request, run_time);
}

}  // namespace

const Job* under_way(const Index& index, JobId id, int attempt) {
  const Job* job = index.find(id);
  if (job == nullptr || !is_active(*job) || attempt_of(*job)->number != attempt) return nullptr;
  return job;
}

void Step::take(const event::AttemptStarted& event) {
  const Job* job = under_way(index_, event.job, event.attempt);
  if (job == nullptr) return;
  const bool is_new = std::holds_alternative<Starting>(job->state);
  // One that is found running after a restart says nothing of launches.
  if (is_new) judge_node(*job, nullptr);
  // A pid of 0 is one that could not be read.
  if (const auto* running = std::get_if<Running>(&job->state);
      running != nullptr && running->watches == event.watches &&
      running->isolation == event.isolation &&
      (running->attempt.pid == event.pid || event.pid == 0)) {
    return;
  }
  index_.change(event.job, [&event](Job& changed) {
    Running running;
    if (auto* starting = std::get_if<Starting>(&changed.state)) {
      running.attempt = std::move(starting->attempt);
      running.stop = std::move(starting->stop);
      running.requeues = starting->requeues;
    } else {
      running = std::get<Running>(changed.state);
    }
    if (event.pid != 0) running.attempt.pid = event.pid;
    running.watches = event.watches;
    running.isolation = event.isolation;
    changed.state = std::move(running);
  });
  saved(event.job, is_new ? Happening::Started : Happening::Nothing);
}

void Step::take(const event::AttemptEnded& event) {
  const Job* job = under_way(index_, event.job, event.attempt);
  if (job == nullptr) return;
  index_.peaks.add(job->spec.user.uid, job->spec.command, event.outcome.peak_gpu_memory);
  judge_node(*job, &event.outcome);
  const Attempt attempt = *attempt_of(*job);
  decide_end(*job, with_run_time(event.outcome, *job, index_.now));
  index_.put_nodes_used_by(event.job, attempt);
  index_.forget_processes(event.job, attempt);
}

void Step::decide_end(const Job& job, Outcome outcome) {
  const JobId id = job.id;
  const Status status = status_for(outcome);
  const Stop* stopped = stop_of(job);
  const bool never_ran = outcome.reason == EndReason::NotStarted;
  // It ended because it was told to, whatever its exit code; one that had ended by itself before
  // has ended. A supervisor that could only be told so without a reason takes it for a person's.
  const bool unfinished = never_ran || status == Status::Lost ||
                          outcome.reason == EndReason::Preempted ||
                          outcome.reason == EndReason::Cancelled;
  if (outcome.reason == EndReason::Cancelled && is_stopped_for_overuse(job)) {
    outcome.message = overuse_of(*attempt_of(job));
  }
  // What runs on under another gflowd is not run beside itself.
  if (is_kept(outcome.message, Kept::RunsElsewhere)) return end(id, status, outcome);
  if (stopped != nullptr && stopped->reason == EndReason::Preempted && unfinished) {
    return run_again(id, outcome, [](Job& changed) { ++changed.preemptions; });
  }
  if (stopped != nullptr && (never_ran || status == Status::Lost)) {
    return end(id, Status::Cancelled, outcome);
  }
  if (never_ran) return start_again(job, outcome);
  if (stopped == nullptr && status == Status::Lost && job.spec.requeue)
    return queue_again(job, outcome);
  if (stopped == nullptr && status == Status::Failed && job.retries < job.spec.max_retries) {
    return run_again(id, outcome, [](Job& changed) { ++changed.retries; });
  }
  end(id, status, outcome);
}

/// Back into the queue.
template <typename Count>
void Step::run_again(JobId id, const Outcome& outcome, Count count) {
  index_.change(id, [&](Job& job) {
    note_served(job, outcome.run_time);
    count(job);
    job.state = Queued{};
  });
  saved(id, Happening::Requeued);
}

void Step::take(const event::AttemptRevoked& event) {
  const Job* job = under_way(index_, event.job, event.attempt);
  if (job == nullptr) return;
  // Nothing is known of the node: the next one is tried.
  if (auto at = index_.health.find(attempt_of(*job)->allocation.node);
      at != index_.health.end() && at->second.trial == event.job) {
    at->second.trial.reset();
    put_health(at->first);
  }
  const Stop* stopped = stop_of(*job);
  if (stopped != nullptr && stopped->reason != EndReason::Preempted) {
    return end(event.job, Status::Cancelled, {.reason = EndReason::Cancelled});
  }
  Queued queued;
  if (const auto* starting = std::get_if<Starting>(&job->state)) {
    queued.requeues = starting->requeues;
    queued.preemption_at = starting->preemption_at;
  }
  const Attempt attempt = *attempt_of(*job);
  to_queue(event.job, std::move(queued));
  index_.put_nodes_used_by(event.job, attempt);
}

void Step::take(const event::StopBegun& event) {
  const Job* job = under_way(index_, event.job, event.attempt);
  if (job == nullptr || stop_of(*job) != nullptr) return;
  note_stop(event.job, Stop{EndReason::Preempted, {}, 0});
  index_.fronts.open_all();
}

void Step::take(const event::StopRefused& event) {
  const Job* job = under_way(index_, event.job, event.attempt);
  const Stop* stopped = job == nullptr ? nullptr : stop_of(*job);
  if (stopped == nullptr || stopped->reason != EndReason::Preempted) return;
  index_.change(event.job, [](Job& changed) {
    if (auto* starting = std::get_if<Starting>(&changed.state)) starting->stop.reset();
    if (auto* running = std::get_if<Running>(&changed.state)) running->stop.reset();
    changed.spec.preemption = Preemption::None;
  });
  saved(event.job, Happening::Nothing);
  makes_no_room(event.job);
  index_.fronts.open_all();
}

/// Who waited for its room may look for other.
void Step::makes_no_room(JobId victim) {
  for (const JobId id : index_.in(Status::Queued)) {
    const auto* queued = std::get_if<Queued>(&index_.find(id)->state);
    if (queued == nullptr || !std::ranges::binary_search(queued->victims, victim)) continue;
    auto& waiting = std::get<Queued>(index_.jobs.at(id).state);
    std::erase(waiting.victims, victim);
    // Others of them may have gone, for nothing then: that is not done again at once.
    if (!index_.several_stopped_for.contains(id)) waiting.preemption_at.reset();
    saved(id, Happening::Nothing);
  }
}

/// Where it is told late, the job has been told otherwise since: one that was to go on and is not
/// to any more is parked once more, and one that is to go on is on its way, whatever was found.
void Step::take(const event::ParkingChanged& event) {
  const Job* job = under_way(index_, event.job, event.attempt);
  const auto* running = job == nullptr ? nullptr : std::get_if<Running>(&job->state);
  if (running == nullptr || running->move) return;
  if (running->lends) {
    note_lent(*job, event.parked);
    return index_.fronts.open_all();
  }
  ParkedMemory parked = event.parked;
  if (running->suspended && parked.how == Parking::None && parked.refused.empty()) return;
  if (!running->suspended && parked.how != Parking::None) parked.how = Parking::Ending;
  if (parked == running->parked) return;
  const bool was_to_make_room = running->suspended && !running->stop;
  index_.change(event.job, [&parked](Job& changed) {
    std::get<Running>(changed.state).parked = std::move(parked);
  });
  saved(event.job, Happening::Nothing);
  if (was_to_make_room && !event.parked.refused.empty()) makes_no_room(event.job);
  index_.fronts.open_all();
}

/// Nothing ran. A job that fails first on a node that was well may itself be the cause, and is held
/// when that comes again and again; while the node is failing anyway, that says nothing of the job.
void Step::start_again(const Job& job, const Outcome& outcome) {
  const NodeHealth* node = nullptr;
  if (const auto at = index_.health.find(attempt_of(job)->allocation.node);
      at != index_.health.end() && at->second.tried.contains(job.id)) {
    node = &at->second;
  }
  if (node == nullptr) return queue_again(job, outcome);
  // Others are tried first when the pause of the node is over, however often it is prolonged.
  const auto not_before = node->retry_at + index_.longest_launch_pause();
  if (node->failures == 1) return queue_again(job, outcome, not_before);
  const auto* starting = std::get_if<Starting>(&job.state);
  to_queue(job.id, Queued{starting == nullptr ? 0 : starting->requeues, not_before, in_english([&] {
                            return outcome_text(outcome);
                          })});
}

/// It was not started or was lost, for no fault of its own: once more, after a pause that doubles,
/// until that came too often in a row. Then a person has to look, unless any job would have met it:
/// such a one waits for its pause even where others are started meanwhile.
void Step::queue_again(const Job& job,
                       const Outcome& outcome,
                       std::optional<std::chrono::milliseconds> not_before) {
  constexpr std::chrono::minutes kSettled{10};  // one that ran so long begins to count anew
  int before = 0;
  if (const auto* starting = std::get_if<Starting>(&job.state)) before = starting->requeues;
  if (const auto* running = std::get_if<Running>(&job.state)) {
    const auto ran = std::max<std::chrono::milliseconds>(
        outcome.run_time, index_.now.wall - running->attempt.started);
    before = ran < kSettled ? running->requeues : 0;
  }
  const int requeues = before + 1;
  const std::string why = in_english([&] { return outcome_text(outcome); });
  Queued again{requeues, not_before.value_or(index_.lived() + index_.launch_pause(requeues)), why};
  if (const auto* starting = std::get_if<Starting>(&job.state)) {
    again.preemption_at = starting->preemption_at;  // others made room for it: not so soon again
  }
  JobState next = std::move(again);
  const bool may_be_cause =
      outcome.reason != EndReason::NotStarted || !is_of_any_job(outcome.failure);
  if (requeues >= index_.policy.max_launch_failures && may_be_cause) {
    next = Held{kept<Kept::SeveralTimes>(requeues, why)};
  }
  if (requeues >= index_.policy.max_launch_failures && !may_be_cause) {
    std::get<Queued>(next).not_before = index_.lived() + index_.launch_pause(requeues);
    const auto health = index_.health.find(attempt_of(job)->allocation.node);
    if (health != index_.health.end()) health->second.tried.erase(job.id);
  }
  const bool is_held = std::holds_alternative<Held>(next);
  index_.change(job.id, [&](Job& changed) {
    note_served(changed, outcome.run_time);
    changed.state = std::move(next);
  });
  saved(job.id, is_held ? Happening::Held : Happening::Requeued);
}

}  // namespace gflow::engine
