// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/job.h"
#include "core/job_changes.h"
#include "core/job_range.h"
#include "core/machine.h"
#include "core/made_slice.h"
#include "core/principal.h"
#include "engine/fair_share.h"
#include "engine/preemption_rules.h"
#include "placement/ledger.h"
#include "placement/policy.h"

namespace gflow::engine {

namespace event {

/// New jobs, all or none. A dependency with bit kSibling set names a job of this very submission:
/// kSibling + the position of its spec, which is no array.
struct Submit {
  std::vector<JobSpec> specs;
  Principal by;
  std::vector<std::int64_t> payload_bytes{};  ///< of each job of a spec; empty: they have none
  /// For which tasks of an array a spec stands, by position; empty: each is one job. A task is
  /// called NAME_NUMBER, if it is called.
  std::vector<std::optional<TaskRange>> tasks{};

  /// How many jobs a spec stands for.
  [[nodiscard]] std::uint64_t count_of(std::size_t position) const {
    return tasks.empty() || !tasks[position] ? 1 : tasks[position]->count;
  }
  [[nodiscard]] std::uint64_t count() const;
};
constexpr std::uint64_t kSibling = std::uint64_t{1} << 62;

/// Jobs just submitted could not be stored, and nobody was told of them: there never were any. None
/// was launched.
struct Withdraw {
  std::vector<JobId> jobs;
};

/// Pending jobs end at once; running ones are told to stop. Jobs that ended already are refused.
struct Cancel {
  std::vector<JobId> jobs;
  Principal by;
  int signal = 0;  ///< sent instead of SIGTERM if not 0
};
/// Sends a signal to all processes of jobs that run, and changes nothing.
struct Signal {
  std::vector<JobId> jobs;
  Principal by;
  int number = 0;  ///< 1..64
};
struct Hold {
  std::vector<JobId> jobs;
  Principal by;
};
struct Release {
  std::vector<JobId> jobs;
  Principal by;
  std::optional<WallTime> at;  ///< wait in the queue until then
};
/// Stops running jobs where they stand, or lets them go on. They keep their memory, and give back
/// compute and CPUs; only Resume ends that, and then they go on when their compute is free. The
/// answer names those this changed: not those that were suspended by hand already, or not.
struct Suspend {
  std::vector<JobId> jobs;
  Principal by;
};
struct Resume {
  std::vector<JobId> jobs;
  Principal by;
};
/// Brings a running job to another GPU of its node, where its programs go on. It has both until
/// MoveEnded. Refused where it cannot be, or the GPU is not free, or is kept for others.
struct Move {
  JobId job;
  std::optional<int> gpu;  ///< index on the node; empty: one like its own is chosen
  /// That programs which it starts later use the GPU it was on is all right: where nothing but
  /// variables keeps it from that one.
  bool running_only = false;
  Principal by;
};
/// All or none. What may be changed until when is in the description of a job.
struct Update {
  std::vector<JobId> jobs;
  Principal by;
  JobChanges changes;
};
/// Has room made for a job that waits, by the moves that State::defrag() told of it: those who move
/// stop, and are queued again behind it, as it gets a priority above theirs. Refused if they would
/// not start it now, or others come first. The answer names those who move.
struct ApplyDefrag {
  JobId job;
  std::vector<JobId> moves;  ///< ascending
  std::size_t most = 0;      ///< of the first so many that wait it is one
  Principal by;
};
/// The same of moves that somebody else found to be right and may make, for jobs for whom nobody
/// else makes room (State::spare()): one that waits, or those of a gang. Those who move are told to
/// stop, unless they are, and the room that they leave is kept for these jobs, which get that
/// priority. Without moves none is kept. Who does not wait, or does not run, is left out.
struct MakeRoom {
  std::vector<JobId> jobs;
  std::vector<JobId> moves;  ///< ascending
  int priority = kDefaultPriority;
};
/// The supervisor of an attempt took it: the job's process exists or is about to.
struct AttemptStarted {
  JobId job;
  int attempt = 0;
  int pid = 0;
  bool watches = false;  ///< it will be told when a program of it wants a GPU that is lent
  GpuIsolation isolation = GpuIsolation::None;
};
/// All processes of an attempt are gone (or it never had any).
struct AttemptEnded {
  JobId job;
  int attempt = 0;
  Outcome outcome;
};
/// The daemon went away before a supervisor took the attempt, and none ever will: nothing ran, and
/// it is nobody's fault.
struct AttemptRevoked {
  JobId job;
  int attempt = 0;
};
/// Somebody else stops an attempt: what it holds is free before long, as of one that makes room.
struct StopBegun {
  JobId job;
  int attempt = 0;
};
/// An attempt that was to make room may not be stopped now: it goes on, and makes room for nobody
/// until its preemption is set again by an Update. Who waited for it looks for other room.
struct StopRefused {
  JobId job;
  int attempt = 0;
};
/// What became of the GPU memory of an attempt that was suspended or goes on.
struct ParkingChanged {
  JobId job;
  int attempt = 0;
  ParkedMemory parked;
};
/// An attempt that was to move is on the one GPU or the other.
struct MoveEnded {
  JobId job;
  int attempt = 0;
  std::string refused;  ///< why it stayed where it was; "": it moved
};
/// A program of an attempt wants the GPU that it lends.
struct GpuWanted {
  JobId job;
  int attempt = 0;
};
/// What became of an order to make a slice of MIG, or to remove it.
struct SliceChanged {
  std::string node;
  std::string gpu;  ///< UUID
  int start = 0;    ///< the first memory slice of it
  SliceOutcome outcome;
};
/// Nodes that are there, by name: new ones, those that are not what they were, those that answer
/// again. Processes listed per device are only those not gflow's.
struct NodesChanged {
  std::vector<Machine> nodes;
  /// Of these, by name, those that are known and do not answer now, and why: NodeUnreachable.
  std::map<std::string, std::string> unreachable{};
};
/// A node does not answer. Nothing is placed there, and nothing is judged: its jobs keep their
/// state and what they hold until it answers again or is removed.
struct NodeUnreachable {
  std::string node;
  std::string why;  ///< for people
};
/// A node will not come back. Jobs started there are lost, and run again if they asked for it; of a
/// job that has it as a further node only the command knows what that means, so it goes on. The
/// node is forgotten when nothing is held there any more; one that comes back all the same is new.
struct NodeRemoved {
  std::string node;
  std::string why;  ///< for people
};
/// Lets nothing new start on a device or a node, or lets it again. Operators only; the answer
/// names no job.
struct Drain {
  /// what.node may be "" where there is only one it can be; of what.gpu and what.uuid, a UUID names
  /// the device, also one that is not there, and an index only one that is.
  gflow::Drain what;
  bool resume = false;  ///< take the drain back; what.reason means nothing then
  Principal by;
};
/// Nothing happened but time: a WakeAt is due.
struct Tick {};
/// The policy of the configuration file was read again.
struct Configure;

}  // namespace event

/// GPUs that the jobs of one user may hold at once; 0 is any number.
struct GpuQuota {
  int per_user = 0;
  std::map<std::string, int, std::less<>> users;  ///< of single users instead, by name

  [[nodiscard]] bool none() const { return per_user == 0 && users.empty(); }
  /// Nothing where there is no limit.
  [[nodiscard]] std::optional<Share> of(std::string_view user) const;

  friend bool operator==(const GpuQuota&, const GpuQuota&) = default;
};

/// What the engine decides by. An administrator sets it, but for `preemption` and `fair_share`.
struct Policy {
  /// How long a blocked job at the head of the queue lets smaller jobs without a provable end pass.
  std::chrono::seconds backfill_patience{1800};
  std::chrono::seconds launch_backoff{2};       ///< after a failed launch; doubled each time
  int max_launch_failures = 3;                  ///< then the job is put on hold
  std::chrono::seconds keep_ended{90 * 86400};  ///< ended jobs are forgotten after this time
  std::size_t max_ended = 100'000;              ///< and beyond this number: EndedJobs::next()
  std::size_t max_queued = 2'000'000;           ///< jobs pending at once
  std::size_t max_queued_per_user = 1'000'000;  ///< of one user
  /// Running jobs of one user that reserve no GPUs and no CPUs, which nothing else bounds.
  std::size_t max_unreserved_per_user = 1000;
  GpuQuota gpu_quota;
  /// What jobs of one user that have not ended take of memory and disk in texts: descriptions,
  /// scripts, environments. As much again of the descriptions of his ended jobs.
  Memory max_stored_per_user = Memory::gib(1);
  /// Idempotency keys of one user that are remembered, which outlive the jobs that came with them.
  std::size_t max_keys_per_user = 200'000;
  /// How long GPUs are held for a program outside that said neither how long nor until when.
  std::chrono::seconds allocation_ttl{86'400};
  std::size_t max_submit = 10'000;  ///< jobs in one submission
  std::size_t max_dependencies_per_job = 10'000;
  std::size_t max_dependencies_per_user = 1'000'000;  ///< of jobs not started yet, in all
  std::size_t max_dependencies = 4'000'000;           ///< the same of all users
  std::string placement;  ///< name of the placement policy; "" is gflow's own
  placement::PolicyOptions placement_options;
  placement::SharingRules sharing;  ///< of one device
  /// Who goes first among jobs of one priority.
  OrderRules order;
  PreemptionRules preemption;  ///< when a running job gives way to one of its priority
  FairShareRules fair_share;   ///< how far the jobs of those who had much stand back
  /// In the learned order a blocked job lets others pass for so long, unless it wants several
  /// nodes.
  std::chrono::seconds keep_after{12 * 3600};
  PriorityLimits priority;  ///< who may ask for how much
  bool preempt = true;      ///< running jobs that allow it may make room for one ahead of them
  bool share_with_others = false;  ///< give out devices that have processes not gflow's
  bool allow_see_all = false;      ///< jobs may ask to see every device and hold none
  /// Jobs are stopped that use a device they do not hold, or that much more of the memory of theirs
  /// than is reserved for them.
  bool stop_overuse = false;
  Memory overuse_margin = Memory::gib(2);
  /// A job that has left its GPU idle for so long lends it to one that waits and is queued again
  /// when it has to make room, until it wants it back. 0: none does.
  std::chrono::seconds lend_idle_after{0};
  /// GPUs with MIG enabled, by UUID, of which slices are made and removed as jobs ask for them.
  static constexpr std::string_view kAllGpus = "all";
  std::vector<std::string> cut_gpus;

  [[nodiscard]] bool cuts(std::string_view gpu) const;
  [[nodiscard]] OtherUse other_use() const {
    return share_with_others ? OtherUse::Shared : OtherUse::Barred;
  }

  friend bool operator==(const Policy&, const Policy&) = default;
};

struct event::Configure {
  Policy policy;
};

using Event = std::variant<event::Submit,
                           event::Withdraw,
                           event::Cancel,
                           event::Signal,
                           event::Hold,
                           event::Release,
                           event::Suspend,
                           event::Resume,
                           event::Move,
                           event::Update,
                           event::ApplyDefrag,
                           event::MakeRoom,
                           event::AttemptStarted,
                           event::AttemptEnded,
                           event::AttemptRevoked,
                           event::StopBegun,
                           event::StopRefused,
                           event::ParkingChanged,
                           event::MoveEnded,
                           event::GpuWanted,
                           event::SliceChanged,
                           event::NodesChanged,
                           event::NodeUnreachable,
                           event::NodeRemoved,
                           event::Drain,
                           event::Tick,
                           event::Configure>;

}  // namespace gflow::engine
