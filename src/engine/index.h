// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/dependencies.h"
#include "engine/health.h"
#include "engine/peaks.h"
#include "engine/state.h"
#include "placement/ledger.h"
#include "placement/placer.h"

/// Inside of the engine: what State holds. Not for other modules.
namespace gflow::engine {

/// Place in the queue: smaller is earlier. Priority first, then the rank the order gives (order.h),
/// then age (id).
struct QueueKey {
  int priority = kDefaultPriority;
  std::int64_t rank = 0;
  JobId id;

  friend bool operator==(const QueueKey&, const QueueKey&) = default;
  friend bool operator<(const QueueKey& a, const QueueKey& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    return a.rank != b.rank ? a.rank < b.rank : a.id < b.id;
  }
};

/// All a decision looks at besides the place in the queue: if one job of a shape cannot start in a
/// pass, none behind it of the same shape can.
struct Shape {
  placement::DemandIndex demand = 0;
  std::chrono::seconds bound{0};  ///< time limit and grace; 0 is no limit

  friend auto operator<=>(const Shape&, const Shape&) = default;
};

/// A device of a node.
struct DeviceKey {
  placement::NodeIndex node = 0;
  int gpu = 0;

  friend auto operator<=>(const DeviceKey&, const DeviceKey&) = default;
};

/// A group is its owner's: the same name is another group for another user.
struct GroupKey {
  std::uint32_t uid = 0;
  std::string name;

  friend auto operator<=>(const GroupKey&, const GroupKey&) = default;
};
[[nodiscard]] GroupKey group_of(const JobSpec& spec);

/// Jobs that share a limit of how many run at once. Of those ready, only as many as may still start
/// stand in the queue; the rest are parked.
struct Group {
  int limit = 0;            ///< 0: none; max_concurrent of every member
  std::set<JobId> members;  ///< jobs that have not ended; without any, there is no group
  int active = 0;
  std::set<QueueKey> queued;
  std::set<QueueKey> parked;
};

/// Where a job would go, and why there.
struct Chosen {
  std::vector<placement::Placement> placements;  ///< one for each node it asked for
  std::string because;                           ///< for people; "" where there was no choice
};

struct Index;

/// A demand asked about and not kept, unless a job has it: what people only ask leaves nothing.
class PassingDemand {
 public:
  PassingDemand(Index& index, const Request& request);
  ~PassingDemand();
  PassingDemand(const PassingDemand&) = delete;
  PassingDemand& operator=(const PassingDemand&) = delete;
  [[nodiscard]] placement::DemandIndex index() const { return demand_; }

 private:
  Index& index_;
  placement::DemandIndex before_;  ///< demands there were
  placement::DemandIndex demand_;
};

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
  std::map<std::string, NodeHealth> health;  ///< of nodes on which launches fail, by name
  std::uint64_t revision = 0;

  std::array<std::set<JobId>, kStatusSlots> by_status;  ///< by the number of Status
  struct UserJobs {
    std::string name;
    std::set<JobId> jobs;
  };
  std::map<std::uint32_t, UserJobs> by_user;
  std::map<Shape, std::set<QueueKey>> ready;  ///< may start as soon as there is room
  /// What a job got when it entered the queue; none where the order is that of submission.
  struct Rank {
    std::int64_t value = 0;
    std::optional<WallTime> guarded;  ///< when to ask again

    friend bool operator==(const Rank&, const Rank&) = default;
  };
  std::map<JobId, Rank> ranks;
  /// What an active job counts with in the order, until it changes. Its allowance is that of the
  /// step of service it entered last: its place must not move because other jobs end.
  struct Incumbent {
    Contender contender;
    int step = -1;
    std::chrono::seconds allowance{0};
  };
  std::map<JobId, Incumbent> incumbents;
  int gpu_scale = OrderRules::kReferenceGpus;  ///< of all nodes, rounded down to a power of 2
  std::map<GroupKey, Group> groups;
  std::set<std::pair<WallTime, JobId>> begin_later;  ///< queued, begin time to come
  std::set<std::pair<WallTime, JobId>> begun;        ///< queued, begin time past
  std::set<std::pair<MonoTime, JobId>> backoff;
  std::map<std::uint32_t, std::size_t> pending;  ///< jobs that wait, by user
  DependencyGraph dependencies;                  ///< of jobs not started yet
  placement::Ledger ledger;                      ///< nodes and what active jobs hold there
  std::unique_ptr<placement::Placer> placer;     ///< by Policy::placement
  History history;                               ///< learned from ended attempts
  FairShare fair;                                ///< what users had
  std::set<std::pair<WallTime, JobId>> guards;   ///< when the places of waiting jobs become guarded
  Peaks peaks;                                   ///< learned from ended attempts
  std::map<DeviceKey, std::set<JobId>> holders;  ///< devices that have jobs
  std::set<std::pair<WallTime, JobId>> standing;  ///< suspended jobs, by submission
  std::set<JobId> preemptible;                    ///< active jobs that may have to make room
  /// Room that was made for a waiting job.
  struct MadeRoom {
    std::vector<JobId> leaving;  ///< who was stopped for it and is not gone yet
    MonoTime at;
  };
  std::map<JobId, MadeRoom> rooms;
  std::multiset<int> cpus_taken;               ///< of the daemon's machine, by number
  std::set<std::pair<MonoTime, JobId>> ends;   ///< active jobs with a limit, by latest end
  std::set<std::pair<WallTime, JobId>> ended;  ///< by end, oldest first

  /// The first job that does not fit and whose place is being kept, and since when.
  struct Head {
    JobId job;
    MonoTime since;
    std::optional<MonoTime> start;  ///< earliest start that can be proven
  };
  std::optional<Head> head;
  std::optional<JobId> first_waiting;  ///< the first of all that does not fit, kept or not

  [[nodiscard]] const Job* find(JobId id) const;
  [[nodiscard]] const std::set<JobId>& in(Status status) const {
    return by_status.at(static_cast<std::size_t>(status));
  }
  [[nodiscard]] std::size_t count(StatusSet statuses) const;
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
  /// Learns from an attempt that ended, and from one that ended before a restart.
  void learn(const Job& job, const Outcome& outcome, WallTime at);
  /// Takes the policy, and with it the placer it names; an unknown name is the default.
  void set_policy(Policy next);
  /// The best place for a job of this demand now, on none of the nodes left out; all of it or
  /// nothing.
  [[nodiscard]] std::optional<Chosen> choose(placement::DemandIndex demand,
                                             const std::vector<placement::NodeIndex>& left_out);
  /// The place of a job in the queue, as it was given when it came in.
  [[nodiscard]] QueueKey key_of(const Job& job) const;
  /// What of a job decides its rank, as it is now.
  [[nodiscard]] Contender contender_of(const Job& job) const;
  /// Whether the place of a blocked job is kept against those behind it.
  [[nodiscard]] bool keeps_place(const Job& job) const;
  /// How long until a running job may have to give way by time alone; nothing if none ever does.
  [[nodiscard]] std::optional<std::chrono::seconds> next_look() const;
  /// The place an active job would have if it had to queue now.
  [[nodiscard]] QueueKey place_of(const Job& job);
  /// How long an active job has been at it, its present attempt only.
  [[nodiscard]] std::chrono::seconds ran(const Job& job) const;
  /// The shape of the job, its demand interned.
  [[nodiscard]] Shape shape_of(const JobSpec& spec);
  [[nodiscard]] placement::DemandIndex demand_of(const JobSpec& spec);
  /// What an active job has on its nodes; a node nobody told of yet is added, not ready.
  [[nodiscard]] std::vector<placement::Placement> placements_of(const Attempt& attempt);
  /// Tells the ledger what the machine is now, with what is drained and used by others.
  void put_machine();
  void put_node(placement::Node node);
  /// The same after the health of a node changed.
  void put_health(const std::string& node);
  /// How long nothing is launched after so many failures in a row.
  [[nodiscard]] std::chrono::milliseconds launch_pause(int failures) const;
  [[nodiscard]] std::chrono::milliseconds longest_launch_pause() const;
  /// After nodes changed: how many GPUs there are decides how far back big jobs stand.
  void count_gpus();
  [[nodiscard]] bool drained(const std::string& node) const;
  /// Errors: not an operator, no such device or node, drained or not drained already.
  [[nodiscard]] Result<void> drain(const event::Drain& event);
  [[nodiscard]] Totals totals() const;

  /// Jobs of a user that wait.
  [[nodiscard]] std::size_t pending_of(std::uint32_t uid) const;

  /// The group of a job that has not ended; null if it is in none.
  [[nodiscard]] Group* group(const Job& job);
  [[nodiscard]] const Group* group(const Job& job) const;
  void balance(Group& group);

  /// How a job that others depend on ended, if it did.
  [[nodiscard]] DependencyGraph::End end_of(JobId id) const;
  [[nodiscard]] std::optional<MonoTime> latest_end(const Job& job) const;

 private:
  void put_drained(placement::NodeIndex node);
  void link_queued(const Job& job, const Queued& queued);
  void unlink_queued(const Job& job);
  void link_ready(const Job& job);
  void rank(const Job& job);
  void rank_anew();
  [[nodiscard]] bool is_stoppable(const Job& job) const;
  [[nodiscard]] bool all_stoppable() const;
  [[nodiscard]] OrderRules order_rules() const;
  void unrank(const Job& job);
  void link_active(const Job& job, const Attempt& attempt);
  void unlink_active(const Job& job, const Attempt& attempt);
  void queue(const Job& job);
  void unqueue(const Job& job);
  void join_group(const Job& job);
  void leave_group(const Job& job);
};

}  // namespace gflow::engine
