// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>

#include "core/job.h"
#include "engine/state.h"
#include "server/counters.h"

namespace gflow::daemon {

/// Counts what becomes of jobs, from how they stand after each tick. What it keeps is of those that
/// run.
class JobWatch {
 public:
  JobWatch(server::Counters& counters, const engine::State& state)
      : counters_(counters), state_(state) {}

  /// One that ran when the daemon started: it did not start now.
  void know(const Job& job);
  /// One that changed. `trace_id` is that of its trace, or "".
  void see(const Job& job, const std::string& trace_id);

 private:
  struct Known {
    int attempt = 0;
    int preemptions = 0;
    int retries = 0;
  };
  void see_start(const Job& job, const Attempt& attempt, const std::string& trace_id);
  void see_end(const Job& job, const Ended& ended, const std::string& trace_id);

  server::Counters& counters_;
  const engine::State& state_;
  std::map<JobId, Known> running_;
};

}  // namespace gflow::daemon
