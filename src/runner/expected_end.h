// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>

#include "attempt/control.h"

namespace gflow::runner {

/// When an attempt should be over, counted a second time beside its supervisor, which a job of the
/// same user can stop. It follows what the supervisor is told, by the rules of shim::Supervisor;
/// never earlier than that, but for the time a launch takes.
class ExpectedEnd {
 public:
  using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC, as the supervisor's
  /// It was told to end.
  struct Told {
    attempt::Ending reason = attempt::Ending::Cancelled;
    Clock::time_point kill_by;  ///< when its grace is over
  };

  void set_grace(std::chrono::seconds grace) { grace_ = grace; }
  [[nodiscard]] std::chrono::seconds grace() const { return grace_; }
  /// How long it has run by now, without the time it was suspended.
  void set_run_time(std::chrono::nanoseconds ran, Clock::time_point now);
  [[nodiscard]] std::chrono::nanoseconds run_time(Clock::time_point now) const;

  void obey(const attempt::Control& control, Clock::time_point now);
  [[nodiscard]] const std::optional<Told>& told() const { return told_; }
  /// Empty without a limit, while it is suspended and once it was told to end.
  [[nodiscard]] std::optional<Clock::time_point> limit_at() const;

 private:
  void stop(const attempt::StopJob& stop, Clock::time_point now);
  void suspend(Clock::time_point now);
  void resume(Clock::time_point now);

  std::chrono::seconds grace_{30};
  std::optional<std::chrono::seconds> limit_;
  std::chrono::nanoseconds ran_{0};  ///< by `since_`, or in all while it is suspended
  std::optional<Clock::time_point> since_;
  bool suspended_ = false;
  std::optional<Told> told_;
};

}  // namespace gflow::runner
