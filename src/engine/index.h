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

#include "engine/cutting.h"
#include "engine/dependencies.h"
#include "engine/ended_jobs.h"
#include "engine/fronts.h"
#include "engine/gangs.h"
#include "engine/health.h"
#include "engine/job_table.h"
#include "engine/peaks.h"
#include "engine/run_set.h"
#include "engine/state.h"
#include "placement/domains.h"
#include "placement/ledger.h"
#include "placement/placer.h"

/// Inside of the engine: what State holds. Not for other modules.
namespace gflow::engine {

/// Whether an active job computes or is suspended, and where its GPU memory is.
[[nodiscard]] placement::Presence presence_of(const Job& job);

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

/// What was told last of when the first jobs that wait should start.
struct ToldForecast {
  std::uint64_t revision = 0;
  std::size_t most = 0;
  MonoTime at{};
  std::vector<Expected> expected;
};

/// Jobs that share a limit of how many run at once. Of those ready, only as many as may still start
/// stand in the queue; the rest are parked.
struct Group {
  int limit = 0;          ///< 0: none; max_concurrent of every member
  RunSet<JobId> members;  ///< jobs that have not ended; without any, there is no group
  int active = 0;
  RunSet<QueueKey> queued;
  RunSet<QueueKey> parked;
};

/// A job that would start before one whose place is kept.
struct Passer {
  Shape shape;
  int priority = kDefaultPriority;
  std::chrono::seconds run_time{0};  ///< expected; no longer than its limit
  std::uint32_t uid = 0;             ///< of its user
  std::int64_t parts = 0;            ///< of GPUs that it would hold
  std::optional<JobId> suspended{};  ///< which suspended job would go on, if it is one
};

/// Where a job would go, and why there.
struct Chosen {
  std::vector<placement::Placement> placements;  ///< one for each node it asked for
  std::string because;                           ///< for people; "" where there was no choice
};

struct Index;

/// The placement policy of that name; the first of them where there is none.
[[nodiscard]] const placement::PolicyEntry& policy_entry(const std::string& name);

/// A demand asked about and not kept, unless a job has it: what people only ask leaves nothing.
class PassingDemand {
 public:
  PassingDemand(Index& index, const placement::Demand& demand);
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
  JobTable jobs;
  JobId next_id{1};
  /// Jobs alike with groups, by their first; until State::restored().
  std::map<JobId, std::uint64_t> restored_in_groups;
  std::map<std::string, NodeRecord> nodes;  ///< by name, those that were told of
  std::set<std::string> removed;  ///< those of them that were and on which something is held still
  std::vector<Drain> drains;
  std::vector<SliceRecord> slices;           ///< of MIG that are gflow's
  std::vector<CutRefusal> cut_refusals;      ///< lately
  std::map<std::string, NodeHealth> health;  ///< of nodes on which launches fail, by name
  std::uint64_t revision = 0;
  std::uint64_t passes = 0;
  std::uint64_t rounds = 0;  ///< over the queue, so far
  std::optional<ToldForecast> told_forecast;

  std::array<RunSet<JobId>, kStatusSlots> by_status;  ///< by the number of Status
  struct UserJobs {
    std::string name;
    RunSet<JobId> jobs;
  };
  std::map<std::uint32_t, UserJobs> by_user;
  std::map<int, RunSet<JobId>> by_priority;     ///< those that have jobs
  std::map<Shape, std::map<Kind, Line>> ready;  ///< may start as soon as there is room
  Fronts fronts;                                ///< of the lines in `ready`
  std::uint64_t knowledge = 1;                  ///< changes with all that allowances hang on
  std::uint64_t fronts_knowledge = 0;           ///< `knowledge` at the last expect_anew()
  std::uint64_t looks = 0;                      ///< for room, so far
  /// Of what ended, by the time gflow had seen pass then.
  std::chrono::milliseconds learned_until = std::chrono::milliseconds::min();
  /// What is kept of an active job while `knowledge` and its step of service stay as they are.
  struct Incumbent {
    Contender contender;
    Chances chances{};
    std::chrono::seconds allowance{0};
    int step = 0;
    std::uint64_t knowledge = 0;
  };
  mutable std::map<JobId, Incumbent> incumbents;
  mutable std::map<JobId, MonoTime> stopping;  ///< since when that is known of them
  int gpu_scale = OrderRules::kReferenceGpus;  ///< of all nodes, rounded down to a power of 2
  std::map<GroupKey, Group> groups;
  Gangs gangs;
  /// By the levels that gangs have, as far as somebody asked; of the nodes as they are.
  std::map<std::vector<std::string>, placement::Domains> domains;
  std::set<std::pair<WallTime, JobId>> begin_later;               ///< queued, begin time to come
  std::set<std::pair<WallTime, JobId>> begun;                     ///< queued, begin time past
  std::set<std::pair<std::chrono::milliseconds, JobId>> backoff;  ///< by Queued::not_before
  std::map<std::uint32_t, std::size_t> pending;                   ///< jobs that wait, by user
  std::map<std::uint32_t, std::size_t>
      unreserved;  ///< active jobs with neither GPUs nor CPUs, by user
  std::map<std::uint32_t, std::int64_t> stored;    ///< bytes_of() jobs not ended, by user
  DependencyGraph dependencies;                    ///< of jobs not started yet
  placement::Ledger ledger;                        ///< nodes and what active jobs hold there
  std::unique_ptr<placement::Placer> placer;       ///< by Policy::placement
  History history;                                 ///< learned from ended attempts
  FairShare fair;                                  ///< what users had
  Peaks peaks;                                     ///< learned from ended attempts
  std::map<DeviceKey, std::set<JobId>> holders;    ///< devices that have jobs
  std::set<std::pair<WallTime, JobId>> suspended;  ///< to make room, by submission
  std::set<JobId> preemptible;                     ///< active jobs that may have to make room
  std::set<JobId> lenders;                         ///< active jobs that may lend an idle GPU
  /// Since when no kernel was seen on a device, by node and index; none where one was, or where
  /// that is not told.
  std::map<std::pair<std::string, int>, MonoTime> idle;
  std::set<JobId> sparing;              ///< State::spare()
  std::set<JobId> several_stopped_for;  ///< when others were last told to make room
  std::map<placement::NodeIndex, std::multiset<int>> cpus_taken;  ///< by number
  std::set<std::pair<MonoTime, JobId>> ends;  ///< active jobs with a limit, by latest end
  EndedJobs ended;
  std::optional<WallTime> forgotten;          ///< State::forgotten()
  std::chrono::milliseconds lived_before{0};  ///< the time gflow had seen pass at `lived_from`
  MonoTime lived_from{};

  /// The first job that does not fit and whose place is being kept.
  struct Head {
    JobId job;
    std::optional<MonoTime> start;  ///< expected; none if too few nodes will ever do
    bool proven = false;            ///< by limits of what runs there
    bool known = true;              ///< by limits or by how long jobs like those ran; else a guess
  };
  /// Of the jobs that wait, those others are told to wait for.
  struct Awaited {
    std::optional<Head> head;
    std::optional<JobId> first;  ///< of all that does not fit, kept or not
  };
  /// By the last pass; nothing if that had nothing to decide, and nobody asked since.
  std::optional<Awaited> awaited;
  /// The same, found out now if it has to be.
  [[nodiscard]] const Awaited& find_awaited();

  [[nodiscard]] const Job* find(JobId id) const;
  [[nodiscard]] const RunSet<JobId>& in(Status status) const {
    return by_status.at(static_cast<std::size_t>(status));
  }
  [[nodiscard]] std::size_t count(StatusSet statuses) const;
  void insert(Job job);  ///< new job, linked
  /// The same of new jobs that wait, which are kept as one. Pointers to jobs are good no more.
  void insert(const JobRange& range);
  /// Whether jobs like this one, in all but id and name, stand the same way in every index.
  [[nodiscard]] static bool can_be_linked_at_once(const Job& job);
  void erase(JobId id);
  /// Enters it where jobs stand whatever their state: by user, by priority.
  void list(const Job& job, std::uint64_t count = 1);  ///< and those behind it, so many in all
  void unlist(const Job& job);
  /// The time gflow has seen pass until now, over all boots.
  [[nodiscard]] std::chrono::milliseconds lived() const { return lived_at(now.mono); }
  [[nodiscard]] std::chrono::milliseconds lived_at(MonoTime mono) const {
    return lived_before + (mono - lived_from);
  }
  /// When it will have seen so much.
  [[nodiscard]] MonoTime mono_at(std::chrono::milliseconds lived) const {
    return lived_from + (lived - lived_before);
  }
  /// Changes a job through `edit(Job&)`, keeping every index right.
  template <typename Edit>
  void change(JobId id, Edit edit) {
    Job& job = jobs.at(id);
    const int priority = job.spec.priority;
    unlink(job);
    edit(job);
    link(job);
    if (job.spec.priority != priority) move(job, priority);
    ++revision;
  }
  void relink(JobId id) {
    change(id, [](Job&) {});
  }
  void link(const Job& job);
  void unlink(const Job& job);
  /// The same as link() of each. `bytes`: bytes_of() all of them. REQUIRES:
  /// can_be_linked_at_once().
  void link(const Job& first, std::uint64_t count, std::int64_t bytes);
  /// Pins ended jobs others have come to wait for; lets go those nobody waits for any more.
  void pin_ended();
  /// Learns from jobs that ended, now or before a restart.
  void learn();
  /// Tells a new placer of the newest jobs as it would have been told while they came and went.
  void learn_traffic();
  /// How long a job that ended ran in all; nothing if it had more to do, or never ran.
  [[nodiscard]] static std::optional<std::chrono::seconds> took(const Job& ended);
  /// Counts what a job that ended had for its owner.
  void charge(const Job& job);
  /// Takes the policy, and with it the placer it names; an unknown name is the default.
  void set_policy(Policy next);
  /// The best place for a job of this demand now, on none of the nodes left out; all of it or
  /// nothing.
  [[nodiscard]] std::optional<Chosen> choose(placement::DemandIndex demand,
                                             const std::vector<placement::NodeIndex>& left_out);
  /// The same on these nodes alone, ascending; null: all.
  [[nodiscard]] std::optional<Chosen> choose(placement::DemandIndex demand,
                                             const std::vector<placement::NodeIndex>& left_out,
                                             const std::vector<placement::NodeIndex>* among);
  /// Good until nodes come or go, or stand elsewhere.
  [[nodiscard]] const placement::Domains& domains_of(const std::vector<std::string>& levels);
  void forget_domains();
  /// The place of a job among those of its kind and of its group.
  [[nodiscard]] QueueKey key_of(const Job& job) const;
  [[nodiscard]] Kind kind_of(const Job& job) const;
  /// What of a job decides its place, as it is now; without what its owner stands back.
  [[nodiscard]] Contender contender_of(const Job& job) const;
  [[nodiscard]] Passer passer_of(const Job& job);
  /// Asks again for what a line keeps of what is known, if that has changed.
  void expect(Line& line) const;
  /// Whether enough jobs like that ran to tell how long they do.
  [[nodiscard]] bool knows_like(const Signature& signature) const;
  /// How long a job runs: by what is known of its like, and at most by its limit.
  [[nodiscard]] std::chrono::seconds expected_run(const Contender& contender) const;
  /// When an active job is gone at the latest, if that is sure: by its limit, and where it was told
  /// to stop, by its grace.
  [[nodiscard]] std::optional<MonoTime> promised_end(const Job& job) const;
  /// That, else by what is known of its like.
  [[nodiscard]] MonoTime expected_end(const Job& job) const;
  /// By how long jobs like it ran, whatever its limit.
  [[nodiscard]] MonoTime likely_end(const Job& job) const;
  /// The place of the first of a line among all that wait, by what expect_anew() asked for.
  [[nodiscard]] QueueKey place_of(const Front& front) const;
  /// Asks again for what all lines keep of what is known, if that has changed.
  void expect_anew();
  /// The place of a job as it is now: of a waiting one, or of an active one if it had to queue.
  [[nodiscard]] QueueKey place_of(const Job& job) const;
  /// When the first of a line that goes on waiting becomes guarded, if ever.
  [[nodiscard]] std::optional<MonoTime> next_guard() const;
  /// Whether the place of a blocked job is kept against those of its priority, too.
  [[nodiscard]] bool keeps_reservation(const Job& job) const;
  /// Whether others move for it, as event::MakeRoom had them: their room is kept for it.
  [[nodiscard]] bool is_room_made(JobId id) const;
  /// Whether it may be stopped to make room, and goes on later.
  [[nodiscard]] bool is_stoppable(const Job& job) const;
  /// Whether it waited so long that expectations do not count against it any more.
  [[nodiscard]] bool is_overdue(const Job& job) const;
  /// Whether it lets others pass although its place is kept, for a while.
  [[nodiscard]] bool is_patient(const Job& job) const;
  /// How long until a running job may have to give way by time alone; nothing if none ever does.
  [[nodiscard]] std::optional<std::chrono::seconds> next_look() const;
  /// Takes a reading of a node's devices: which are idle. Whether one is that was not before, and
  /// that may be lent.
  bool note_idle(const Machine& machine);
  /// The devices of an attempt count as used now.
  void note_use(const Attempt& attempt);
  /// Since when all devices of an active job are idle, in its present attempt; nothing if one is
  /// not, or it has none.
  [[nodiscard]] std::optional<MonoTime> idle_since(const Job& job) const;
  /// When the next of them may lend its GPU, by time alone; nothing if none ever does.
  [[nodiscard]] std::optional<MonoTime> next_lend() const;
  /// Whether anybody might make room for one that waits.
  [[nodiscard]] bool may_make_room() const;
  /// How long an active job has been at it, its present attempt only.
  [[nodiscard]] std::chrono::seconds ran(const Job& job) const;
  /// The shape of the job, its demand interned.
  [[nodiscard]] Shape shape_of(const Job& job);
  [[nodiscard]] placement::DemandIndex demand_of(const JobSpec& spec);
  /// What an active job has on its nodes; a node nobody told of yet is added, not ready.
  [[nodiscard]] std::vector<placement::Placement> placements_of(const Attempt& attempt);
  /// What of a device's memory is reserved for a job that has it.
  [[nodiscard]] Memory reserved_on(const Device& device, const Job& job) const;
  [[nodiscard]] std::vector<GpuMemoryUse> gpu_memory_of(const Job& job) const;
  /// Active jobs whose command runs on this node, ascending.
  [[nodiscard]] std::vector<JobId> started_on(const std::string& node) const;
  /// Tells the ledger what the node is now, with what is drained and used by others. False if that
  /// is what it knew.
  bool put_node(const NodeRecord& record);
  void put_nodes();
  /// The same of those of which slices are gflow's.
  void put_nodes_with_slices();
  /// The same for the nodes of an attempt that begins or is over, where the last reading told what
  /// the job uses of their devices: that is the job's own only while it holds them.
  void put_nodes_used_by(JobId id, const Attempt& attempt);
  /// The attempt is over, and with it what processes of it were seen to use that it did not hold,
  /// whatever the last reading told.
  void forget_processes(JobId id, const Attempt& attempt);
  /// After nodes came: their order is that of their names, whenever they came.
  void sort_nodes();
  /// Forgets nodes that were removed and on which nothing is held any more. True if launches failed
  /// on one of them.
  bool forget_removed();
  bool put_node(placement::Node node);
  /// The same after the health of a node changed.
  void put_health(const std::string& node);
  /// How long nothing is launched after so many failures in a row.
  [[nodiscard]] std::chrono::milliseconds launch_pause(int failures) const;
  [[nodiscard]] std::chrono::milliseconds longest_launch_pause() const;
  [[nodiscard]] OrderRules order_rules() const;
  /// After nodes changed: how many GPUs there are decides how far back big jobs stand.
  void count_gpus();
  /// Errors: not an operator, no such device or node, several nodes and none named, not drained.
  [[nodiscard]] Result<void> drain(const event::Drain& event);
  /// Finds what is drained again on a node whose devices may have other indices now. True if what
  /// is known of a drain changed.
  bool find_drained(const Machine& machine);
  [[nodiscard]] Totals totals() const;
  [[nodiscard]] Totals totals(placement::NodeIndex node) const;

  /// Whether it may start as soon as there is room.
  [[nodiscard]] bool is_ready(const Job& job);

  /// Jobs of a user that wait.
  [[nodiscard]] std::size_t pending_of(std::uint32_t uid) const;

  /// How many GPUs the jobs of a user may hold; nothing where there is no limit. A user whose jobs
  /// have several names, as his account was renamed, is called what the last of them calls him, and
  /// one who has none as is said here.
  [[nodiscard]] std::optional<Share> gpu_limit(std::uint32_t uid, std::string_view otherwise) const;
  /// How much more of GPUs they may hold, in parts: of all that are active, as a suspended one
  /// keeps its place there. Less than nothing after the limit was lowered.
  [[nodiscard]] std::int64_t gpu_limit_left(std::uint32_t uid,
                                            std::string_view otherwise = {}) const;
  /// Whether as many of its user's jobs run without GPUs and CPUs, as it does, as may at once, or
  /// it would hold more of GPUs than is left to its user.
  [[nodiscard]] bool is_at_user_limit(const JobSpec& spec) const;
  /// The gang of a waiting job if it starts together with it, else null.
  [[nodiscard]] const Gang* gang_to_start(const Job& job) const;
  /// What of GPUs the job would hold, or all of its gang that start together.
  [[nodiscard]] std::int64_t parts_to_start(const Job& job) const;
  /// Whether a limit of its user keeps the waiting job, or its gang, from starting.
  [[nodiscard]] bool is_at_limit(const Job& job) const;
  /// How many more such jobs may run now by the limit of their user, and of their group if they
  /// came to it: its jobs that may start, too, stand before them.
  [[nodiscard]] std::size_t user_limit_left(const JobSpec& spec) const;
  [[nodiscard]] std::size_t group_limit_left(const JobSpec& spec) const;

  /// The group of a job that has not ended; null if it is in none.
  [[nodiscard]] Group* group(const Job& job);
  [[nodiscard]] const Group* group(const Job& job) const;
  void balance(Group& group);

  /// How a job that others depend on ended, if it did.
  [[nodiscard]] DependencyGraph::End end_of(JobId id) const;
  /// When its limit ends an active job; empty if it has none, or stands.
  [[nodiscard]] std::optional<MonoTime> latest_end(const Job& job) const;

 private:
  void move(const Job& job, int old_priority);
  void link_waiting();
  void unlink_waiting();
  void link_queued(const Job& job, const Queued& queued);
  void unlink_queued(const Job& job);
  void link_ready(const Job& job, std::uint64_t count = 1);
  [[nodiscard]] const Incumbent& incumbent(const Job& job) const;
  [[nodiscard]] std::chrono::seconds waited(const Job& job) const;
  [[nodiscard]] bool all_stoppable() const;
  void carry(const Job& job, int times);
  bool forget_untold();
  void link_active(const Job& job, const Attempt& attempt);
  void unlink_active(const Job& job, const Attempt& attempt);
  void queue(const Job& job, std::uint64_t count = 1);
  void unqueue(const Job& job);
  void join_group(const Job& job, std::uint64_t count = 1);
  void leave_group(const Job& job);
};

/// What State::check() says: the first index that is not what the jobs and nodes give, or "".
[[nodiscard]] std::string contradiction(const Index& index);

}  // namespace gflow::engine
