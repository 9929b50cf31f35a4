// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "engine/turn.h"

namespace gflow::engine {
namespace {

/// The job if this very attempt of it is under way; reports about others are late and mean nothing.
const Job* under_way(const Index& index, JobId id, int attempt) {
  const Job* job = index.find(id);
  if (job == nullptr || !is_active(*job) || attempt_of(*job)->number != attempt) return nullptr;
  return job;
}

/// Why it was told to stop, if it was.
std::optional<EndReason> told_to_stop(const Job& job) {
  const auto reason = [](const std::optional<Stop>& stop) {
    return stop ? std::optional(stop->reason) : std::nullopt;
  };
  if (const auto* starting = std::get_if<Starting>(&job.state)) return reason(starting->stop);
  const auto* running = std::get_if<Running>(&job.state);
  return running != nullptr ? reason(running->stop) : std::nullopt;
}

}  // namespace

void Turn::take(const event::AttemptStarted& event) {
  const Job* job = under_way(index_, event.job, event.attempt);
  if (job == nullptr) return;
  if (const auto* running = std::get_if<Running>(&job->state);
      running != nullptr && running->attempt.pid == event.pid) {
    return;
  }
  index_.change(event.job, [&event](Job& changed) {
    Running running;
    if (auto* starting = std::get_if<Starting>(&changed.state)) {
      running.attempt = std::move(starting->attempt);
      running.stop = std::move(starting->stop);
    } else {
      running = std::get<Running>(changed.state);
    }
    running.attempt.pid = event.pid;
    changed.state = std::move(running);
  });
  saved(event.job);
}

void Turn::take(const event::AttemptEnded& event) {
  const Job* job = under_way(index_, event.job, event.attempt);
  if (job == nullptr) return;
  index_.learn(*job, event.outcome, index_.now.wall);
  if (event.outcome.reason != EndReason::NotStarted) index_.placer->departed(index_.ledger);
  decide_end(*job, event.outcome);
  // What it used of its devices is not used any more, whatever the last reading said.
  index_.put_machine();
}

void Turn::decide_end(const Job& job, const Outcome& outcome) {
  const JobId id = job.id;
  const Status status = status_for(outcome);
  const std::optional<EndReason> stopped = told_to_stop(job);
  const bool never_ran = outcome.reason == EndReason::NotStarted;
  // It may have saved its work and exited with 0: it was told to, so it is not finished.
  if (stopped == EndReason::Preempted) {
    return run_again(id, outcome, [](Job& changed) { ++changed.preemptions; });
  }
  if (stopped && (never_ran || status == Status::Lost)) {
    return end(id, Status::Cancelled, outcome);
  }
  if (never_ran) return start_again(job, outcome);
  if (!stopped && status == Status::Lost && job.spec.requeue) {
    return run_again(id, outcome, [](Job&) {});
  }
  if (!stopped && status == Status::Failed && job.retries < job.spec.max_retries) {
    return run_again(id, outcome, [](Job& changed) { ++changed.retries; });
  }
  end(id, status, outcome);
}

/// Back into the queue; what it ran for so far is remembered.
template <typename Count>
void Turn::run_again(JobId id, const Outcome& outcome, Count count) {
  index_.change(id, [&](Job& job) {
    job.served += outcome.run_time;
    count(job);
    job.state = Queued{};
  });
  saved(id);
}

void Turn::take(const event::AttemptRevoked& event) {
  const Job* job = under_way(index_, event.job, event.attempt);
  if (job == nullptr) return;
  const std::optional<EndReason> stopped = told_to_stop(*job);
  if (stopped && *stopped != EndReason::Preempted) {
    return end(event.job, Status::Cancelled, {.reason = EndReason::Cancelled});
  }
  const auto* starting = std::get_if<Starting>(&job->state);
  to_queue(event.job, Queued{starting == nullptr ? 0 : starting->launch_failures, std::nullopt});
}

/// Nothing ran. Tried again after a pause that doubles, until there have been too many in a row:
/// then something is wrong with the machine, and a person has to look.
void Turn::start_again(const Job& job, const Outcome& outcome) {
  const auto* starting = std::get_if<Starting>(&job.state);
  const int failures = (starting == nullptr ? 0 : starting->launch_failures) + 1;
  if (failures < index_.policy.max_launch_failures) {
    const auto pause = index_.policy.launch_backoff * (1 << std::min(failures - 1, 16));
    return to_queue(job.id, Queued{failures, index_.now.mono + pause});
  }
  const std::string why =
      fmt::format("it could not be started {} times: {}", failures, outcome.message);
  index_.change(job.id, [&why](Job& changed) { changed.state = Held{why}; });
  saved(job.id);
}

}  // namespace gflow::engine
