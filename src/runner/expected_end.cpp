// SPDX-License-Identifier: Apache-2.0
#include "runner/expected_end.h"

#include <signal.h>

#include <algorithm>

namespace gflow::runner {

using attempt::Ending;

void ExpectedEnd::set_run_time(std::chrono::nanoseconds ran, Clock::time_point now) {
  ran_ = ran;
  since_.reset();
  if (!suspended_) since_ = now;
}

std::chrono::nanoseconds ExpectedEnd::run_time(Clock::time_point now) const {
  return ran_ + (since_ ? now - *since_ : std::chrono::nanoseconds(0));
}

void ExpectedEnd::obey(const attempt::Control& control, Clock::time_point now) {
  if (const auto* its = std::get_if<attempt::StopJob>(&control)) return stop(*its, now);
  if (std::holds_alternative<attempt::ResumeJob>(control)) return resume(now);
  if (told_) return;
  if (std::holds_alternative<attempt::SuspendJob>(control)) return suspend(now);
  if (const auto* its = std::get_if<attempt::SetLimit>(&control)) limit_ = its->limit;
}

std::optional<ExpectedEnd::Clock::time_point> ExpectedEnd::limit_at() const {
  if (told_ || !limit_ || !since_) return std::nullopt;
  return *since_ + (*limit_ - ran_);
}

void ExpectedEnd::stop(const attempt::StopJob& stop, Clock::time_point now) {
  const auto limit = limit_at();
  resume(now);
  auto kill_by = stop.signal == SIGKILL ? now : now + grace_;
  // Its supervisor may have begun with that grace, and been stopped in it.
  if (limit && stop.reason == Ending::TimeLimit) kill_by = std::min(kill_by, *limit + grace_);
  if (!told_) {
    told_ = Told{stop.reason, kill_by};
    return;
  }
  if (stop.reason == Ending::Cancelled && told_->reason == Ending::Preempted) {
    told_->reason = stop.reason;
  }
  told_->kill_by = std::min(told_->kill_by, kill_by);
}

void ExpectedEnd::suspend(Clock::time_point now) {
  ran_ = run_time(now);
  since_.reset();
  suspended_ = true;
}

void ExpectedEnd::resume(Clock::time_point now) {
  suspended_ = false;
  if (!since_) since_ = now;
}

}  // namespace gflow::runner
