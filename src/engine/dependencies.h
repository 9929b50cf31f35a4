// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/job.h"

/// Inside of the engine: who waits for whom. Not for other modules.
namespace gflow::engine {

enum class DependencyState { Met, Unmet, Never };

/// Whether a job that depends on these is cancelled rather than left to wait.
[[nodiscard]] inline bool is_hopeless(const Dependencies& wants, DependencyState state) {
  return wants.auto_cancel && state == DependencyState::Never;
}

/// The dependencies of jobs that have not been started yet; once a job has, they are history. An
/// edge is one job that depends on one other. Each operation costs the edges it is about and the
/// logarithm of all: how a job's dependencies stand is counted, never looked up again.
class DependencyGraph {
 public:
  /// How a job ended that others depend on: nothing if it has not; a job that is forgotten has not
  /// finished.
  enum class End { NotYet, Finished, Unfinished };

  [[nodiscard]] bool contains(JobId id) const { return waiting_.contains(id); }
  /// Takes a job with what it depends on, if that is anything; one that is there already stays as
  /// it is. `end_of(id)` tells of each of its dependencies.
  void add(const Job& job, const std::function<End(JobId)>& end_of);
  /// The job does not wait any more, or depends on other jobs from now on. Safe to repeat.
  void remove(JobId id);
  /// A job ended: counts that for those that depend on it.
  void count_end(JobId id, End end);

  /// Met for a job that is not here.
  [[nodiscard]] DependencyState state(JobId id) const;
  /// Of a job that is not here and would depend on these.
  [[nodiscard]] static DependencyState state_of(const Dependencies& wants,
                                                const std::function<End(JobId)>& end_of);
  /// Jobs that depend on this one directly, ascending.
  [[nodiscard]] const std::set<JobId>& dependents(JobId id) const;

  /// Jobs that came to have dependents, or have none any more, since this was last asked; a job
  /// may be named more than once.
  [[nodiscard]] std::vector<JobId> take_changed() { return std::exchange(changed_, {}); }

  [[nodiscard]] std::size_t edges() const { return edges_; }
  [[nodiscard]] std::size_t edges_of(std::uint32_t uid) const;
  /// How often an edge was looked at so far: what a test of growth counts.
  [[nodiscard]] std::uint64_t visits() const { return visits_; }

  /// The same graph; how often it was looked at is not of it.
  friend bool operator==(const DependencyGraph& a, const DependencyGraph& b) {
    return a.waiting_ == b.waiting_ && a.dependents_ == b.dependents_ && a.users_ == b.users_;
  }

 private:
  struct Waiting {
    std::vector<JobId> on;
    DependencyMode mode = DependencyMode::All;
    std::uint32_t uid = 0;
    std::size_t finished = 0;
    std::size_t unfinished = 0;

    friend bool operator==(const Waiting&, const Waiting&) = default;
  };
  static void count(Waiting& waiting, End end);
  [[nodiscard]] static DependencyState state(const Waiting& waiting);

  std::map<JobId, Waiting> waiting_;
  std::map<JobId, std::set<JobId>> dependents_;
  std::map<std::uint32_t, std::size_t> users_;  ///< edges by the user of the dependent
  std::size_t edges_ = 0;
  std::uint64_t visits_ = 0;
  std::vector<JobId> changed_;
};

}  // namespace gflow::engine
