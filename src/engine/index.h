// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/state.h"

/// Inside of the engine: what State holds. Not for other modules.
namespace gflow::engine {

/// Place in the queue: smaller is earlier. Priority first, then age (id).
struct QueueKey {
  int priority = kDefaultPriority;
  JobId id;

  friend bool operator==(const QueueKey&, const QueueKey&) = default;
  friend bool operator<(const QueueKey& a, const QueueKey& b) {
    return a.priority != b.priority ? a.priority > b.priority : a.id < b.id;
  }
};
[[nodiscard]] inline QueueKey key_of(const Job& job) { return {job.spec.priority, job.id}; }

/// All a decision looks at besides the place in the queue: if one job of a shape cannot start in a
/// pass, none behind it of the same shape can.
struct Shape {
  int gpus = 0;
  int cpus = 0;
  Memory memory{};
  std::chrono::seconds bound{0};  ///< time limit and grace; 0 is no limit

  friend auto operator<=>(const Shape&, const Shape&) = default;
};
[[nodiscard]] Shape shape_of(const JobSpec& spec);

/// Amounts that are free, or asked for. May go below zero when a machine shrinks under its jobs.
struct Amounts {
  int gpus = 0;
  int cpus = 0;
  Memory memory{};

  [[nodiscard]] bool covers(const Amounts& other) const {
    return gpus >= other.gpus && cpus >= other.cpus && memory >= other.memory;
  }
  Amounts& operator+=(const Amounts& other);
  Amounts& operator-=(const Amounts& other);
};
[[nodiscard]] Amounts amounts_of(const Request& request);
[[nodiscard]] Amounts amounts_of(const Shape& shape);

/// Jobs that share a limit of how many run at once. Of those ready, only as many as may still start
/// stand in the queue; the rest are parked.
struct Group {
  int limit = 0;  ///< 0: none
  int active = 0;
  std::set<QueueKey> queued;
  std::set<QueueKey> parked;
};

enum class DependencyState { Met, Unmet, Never };

/// The jobs and every index over them. link() and unlink() are the only writers of the indexes, so
/// that a job changes by unlink, edit, link.
struct Index {
  Policy policy;
  std::string boot_id;
  Now now{};
  std::map<JobId, Job> jobs;
  JobId next_id{1};
  Machine machine;
  std::vector<Drain> drains;
  std::uint64_t revision = 0;

  std::array<std::set<JobId>, 12> by_status;  ///< by the number of Status
  struct UserJobs {
    std::string name;
    std::set<JobId> jobs;
  };
  std::map<std::uint32_t, UserJobs> by_user;
  std::map<Shape, std::set<QueueKey>> ready;  ///< may start as soon as there is room
  std::map<std::string, Group> groups;
  std::set<std::pair<WallTime, JobId>> begin_later;  ///< queued, begin time to come
  std::set<std::pair<WallTime, JobId>> begun;        ///< queued, begin time past
  std::set<std::pair<MonoTime, JobId>> backoff;
  std::map<JobId, std::set<JobId>> dependents;  ///< pending jobs by what they depend on
  std::map<int, JobId> holders;                 ///< device -> job
  std::set<std::pair<MonoTime, JobId>> ends;    ///< active jobs with a limit, by latest end
  std::set<std::pair<WallTime, JobId>> ended;   ///< by end, oldest first
  Totals totals;
  Amounts held;  ///< by all active jobs

  /// The first job that does not fit, whose place is being kept, and since when.
  struct Head {
    JobId job;
    MonoTime since;
    std::optional<MonoTime> start;  ///< earliest start that can be proven
  };
  std::optional<Head> head;

  [[nodiscard]] const Job* find(JobId id) const;
  void insert(Job job);  ///< new job, linked
  void erase(JobId id);
  /// Changes a job through `edit(Job&)`, keeping every index right.
  template <typename Edit>
  void change(JobId id, Edit edit) {
    Job& job = jobs.at(id);
    unlink(job);
    edit(job);
    link(job);
    ++revision;
  }
  void relink(JobId id) {
    change(id, [](Job&) {});
  }
  void link(const Job& job);
  void unlink(const Job& job);
  void recount();  ///< totals from machine, holders and held

  void limit_group(const std::string& name, int limit);

  /// Of a job that has not been started yet; once it has, its dependencies are history.
  [[nodiscard]] DependencyState dependency_state(const Dependencies& dependencies) const;
  [[nodiscard]] DependencyState dependency_state(const Job& job) const {
    return job.attempts > 0 ? DependencyState::Met : dependency_state(job.spec.dependencies);
  }
  [[nodiscard]] Amounts free() const;
  [[nodiscard]] std::vector<int> free_gpus() const;
  [[nodiscard]] std::optional<MonoTime> latest_end(const Job& job) const;

 private:
  void link_queued(const Job& job, const Queued& queued);
  void unlink_queued(const Job& job);
  void link_ready(const Job& job);
  void link_active(const Job& job, const Attempt& attempt);
  void unlink_active(const Job& job, const Attempt& attempt);
  void queue(const Job& job);
  void unqueue(const Job& job);
  void balance(Group& group);
};

}  // namespace gflow::engine
