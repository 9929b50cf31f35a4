// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "attempt/control.h"
#include "attempt/exit_record.h"
#include "attempt/order.h"
#include "shim/job_tree.h"
#include "shim/payload.h"

namespace gflow::shim {

/// What a supervisor waits with. Opened before the job is started: without it nobody would notice
/// its end.
struct WaitPoints {
  Fd signals;
  Fd timer;
  [[nodiscard]] static Outcome<WaitPoints> open();
};

/// Watches one job from its first process to its last, waiting in one poll(2) for signals,
/// deadlines and the control group; there is no interval. Assumes that all signals are blocked and
/// that this process is the subreaper of the job.
///
/// The job is over when no process of it is left. When the first one has ended, or the job is to
/// be stopped, the others get a signal, the grace time, and SIGKILL; SIGTERM at the latest when the
/// first one has ended. While it is suspended its time
/// does not run.
class Supervisor {
 public:
  Supervisor(const attempt::Order& order, Payload payload, WaitPoints points);

  /// Runs until the job is over; on_started is called with the pid once its program runs.
  [[nodiscard]] attempt::ExitRecord run(const std::function<void(int)>& on_started);

 private:
  void wait_for_something();
  void read_signals();
  void stop_by_sigterm();
  void obey(const attempt::Control& control);
  void read_exec_result();
  [[nodiscard]] bool has_executed() const;
  void let_reach_program();
  void reap();
  void main_ended(int status);
  void check_deadlines();
  void begin_stop(int signal);
  [[nodiscard]] bool is_ending() const;
  void send(int signal);
  void suspend();
  void resume();
  [[nodiscard]] std::int64_t stood_ns() const;
  [[nodiscard]] std::optional<std::int64_t> after(std::optional<std::int64_t> run_ns) const;
  [[nodiscard]] std::optional<std::int64_t> limit_at() const { return after(limit_ns_); }
  [[nodiscard]] std::optional<std::int64_t> exec_by() const;
  [[nodiscard]] std::int64_t next_deadline() const;
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] attempt::ExitRecord record() const;
  void launch_failed(attempt::ExitRecord& record, const LaunchFailure& failure) const;
  void say_how_it_ended(attempt::ExitRecord& record) const;

  const attempt::Order& order_;
  JobTree tree_;
  Payload payload_;
  WaitPoints points_;
  std::function<void(int)> on_started_;
  std::int64_t started_ns_;
  std::int64_t started_wall_ms_;
  std::optional<std::int64_t> limit_ns_;         ///< how long it may run
  std::optional<std::int64_t> suspended_since_;  ///< while it is suspended
  std::int64_t suspended_before_ns_ = 0;         ///< and has before
  std::set<int> unsent_;                         ///< signals for when it goes on
  bool launching_ = true;                        ///< its program does not run yet
  bool never_executed_ = false;                  ///< and never will
  std::optional<std::int64_t> kill_at_;          ///< when grace is over
  bool terminated_ = false;                      ///< SIGTERM was sent
  bool killing_ = false;                         ///< grace is over: SIGKILL whatever is seen
  bool has_children_ = true;
  std::optional<attempt::Ending> stop_reason_;  ///< why gflow ends it, if it does
  std::string stop_message_;
  std::optional<LaunchFailure> failure_;
  std::optional<int> main_status_;  ///< as wait(2) gave it
};

}  // namespace gflow::shim
