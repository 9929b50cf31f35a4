// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lab/fleet.h"
#include "lab/report.h"
#include "lab/run_times.h"
#include "lab/simulation.h"
#include "lab/trace.h"

namespace gflow::lab {

/// What is replayed: machines, what is there already, what will be submitted.
struct Subject {
  struct Existing {
    Job job;
    std::optional<RunEstimate> still_to_run;  ///< empty: it has ended
  };
  std::string name;  ///< for people: the file
  engine::Policy policy;
  WallTime begins;
  /// The time gflow had seen pass, on which ages are counted; empty: what the calendar says.
  std::optional<std::chrono::milliseconds> lived{};
  std::vector<Machine> fleet;
  std::map<std::string, std::string> unreachable;  ///< of them, by name, and why
  std::vector<NodeHealth> unhealthy;
  std::vector<Drain> drains;
  std::vector<Existing> existing;
  JobId next_id{1};
  std::vector<TraceJob> submissions;
  std::string scheduler;           ///< who started them, if they say when; else ""
  std::vector<std::string> notes;  ///< for people: of what was read
};

/// The trace on an empty fleet. Jobs that want more GPUs than a node has get whole nodes.
[[nodiscard]] Subject subject_of(Trace trace, std::vector<Machine> fleet, std::string name);

/// What is to be different.
struct WhatIf {
  std::vector<std::string> add_nodes;     ///< "sim:8xH100"
  std::vector<std::string> remove_nodes;  ///< names; "" or "local" is the daemon's own machine
  std::optional<std::string> nodes;       ///< all of them: "64x8"
  /// Settings of the policy, by their names in the configuration.
  std::vector<std::pair<std::string, std::string>> settings;

  [[nodiscard]] bool changes_nothing() const {
    return add_nodes.empty() && remove_nodes.empty() && !nodes && settings.empty();
  }
  [[nodiscard]] std::string text() const;  ///< "--add-node sim:8xH100 --order fifo"
};
/// Errors: Usage, NotFound.
[[nodiscard]] Result<Subject> changed(const Subject& subject, const WhatIf& what_if);

/// The subject at the moment it begins, nothing submitted yet; runs that are estimated are as long
/// as this quartile.
[[nodiscard]] Simulation simulation_of(
    const Subject& subject,
    const RunnerRules& rules,
    RunEstimate::Span RunEstimate::* quartile = &RunEstimate::median);

/// A replay that was done.
struct Played {
  std::string label;
  std::vector<Life> lives;
  std::vector<Moment> moments;
  std::chrono::milliseconds ended{0};  ///< when the last job did
  int gpus = 0;
  /// The same if every run time that is estimated were the shorter, or the longer, quartile. Empty
  /// if none is.
  std::optional<std::chrono::milliseconds> ended_if_shorter{};
  std::optional<std::chrono::milliseconds> ended_if_longer{};
};
/// Three times where run times are estimated, to know how much hangs on them.
[[nodiscard]] Played play(const Subject& subject,
                          const RunnerRules& rules,
                          const std::string& label,
                          const Progress& progress);

/// What became of the jobs of a trace that says so: nothing is played. Empty of others.
[[nodiscard]] std::optional<Played> as_it_was(const Subject& subject);

/// The figures of one replay.
struct Figures {
  std::int64_t jobs = 0;   ///< that had to wait for a start: not those running at the beginning
  std::int64_t ended = 0;  ///< of them
  std::int64_t never = 0;  ///< refused, or never started
  double mean_wait = 0;    ///< seconds neither worked nor ended: turnaround without the work itself
  double median_wait = 0;
  double p90_wait = 0;
  double p99_wait = 0;
  double longest_wait = 0;
  double worst_wait = 0;  ///< mean of the hundredth that waits longest
  double overtaken = 0;   ///< percent that a job submitted later, and no bigger, started before
  double mean_turnaround = 0;
  double mean_slowdown = 0;  ///< bounded: turnaround by work, work counted as at least 10 s
  double utilization = 0;    ///< percent of all GPU time until the last job ended
  double gpu_hours = 0;
  std::int64_t preemptions = 0;
};
[[nodiscard]] Figures figures_of(const Played& played);

/// Side by side; what the first was is compared with each of the others.
[[nodiscard]] Report replay_report(const Subject& subject, const std::vector<Played>& runs);

}  // namespace gflow::lab
