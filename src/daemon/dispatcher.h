// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/executor.h"
#include "core/made_slice.h"

namespace gflow::daemon {

/// What the tick does to the world once it is committed. The real one gives each order to the
/// executor of its node; the fake one of the crash tests writes down what it was told.
class Dispatcher {
 public:
  virtual ~Dispatcher() = default;

  /// Starts an attempt. What becomes of it comes back as an event.
  virtual void launch(const LaunchOrder& order) = 0;
  /// After a restart: how the attempt a job is in stands, and watch it if it runs. One of which
  /// that is not known yet is told of when it is: Shell::adopted().
  [[nodiscard]] virtual executor::Adoption adopt(const Job& job) = 0;
  /// Tells the attempt of a job to end, for the reason in its Stop.
  virtual void stop(const Job& job) = 0;
  /// Suspends the attempt of a job, or lets it go on. Safe to repeat.
  virtual void suspend(const Job& job) = 0;
  virtual void resume(const Job& job) = 0;
  /// Has it moved as its Running::move says. Safe to repeat.
  virtual void move(const Job& job) = 0;
  virtual void signal(const Job& job, int number) = 0;
  virtual void change_limit(const Job& job) = 0;
  /// Has a slice of MIG made or removed, by its stage. Safe to repeat.
  virtual void cut(const MadeSlice& slice) = 0;
  /// The end of this attempt is committed: nothing of it is needed any more.
  virtual void forget_attempt(JobId job, int attempt) = 0;
  /// The job is gone from the store: its log may go, too.
  virtual void forget_job(JobId job) = 0;
  /// Who fills the disk, for people: the job with the largest log; "" if there is none.
  [[nodiscard]] virtual std::string largest_log() const = 0;
};

}  // namespace gflow::daemon
