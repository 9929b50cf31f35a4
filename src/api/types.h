// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/topology_view.h"
#include "core/blocker.h"
#include "core/gpu_limits.h"
#include "core/job.h"
#include "core/job_changes.h"
#include "core/job_range.h"
#include "core/machine.h"
#include "core/time_slices.h"

/// What goes over the wire, as values. JSON is read and written in json.h; field names there are
/// the names here, with the unit as suffix. docs/format/api.md describes the documents.
namespace gflow::api {

/// A reason a job waits, as kind, code and sentence, with the numbers of its kind.
struct BlockerView {
  BlockerKind kind = BlockerKind::Gpus;
  std::string code;
  std::string text;
  std::optional<std::int64_t> need;  ///< GPUs, nodes, CPUs, bytes, or parts of a GPU's 10,000
  std::optional<std::int64_t> available;
  std::string gpu_kind;  ///< of the GPUs needed: vendor and models, "V100" or "A100|H100"; "": any
  std::vector<blocker::Holder> holders;
  std::vector<blocker::Unusable> unusable;
  std::vector<JobId> jobs;             ///< depended on, or the one ahead
  std::optional<DependencyMode> mode;  ///< of a dependency
  bool never = false;                  ///< a dependency that cannot be satisfied any more
  std::optional<Status> end;           ///< how the first of `jobs` ended, if it never can for that
  std::optional<WallTime> at;          ///< begin time, or when the job ahead should start

  friend bool operator==(const BlockerView&, const BlockerView&) = default;
};
[[nodiscard]] BlockerView view_of(const Blocker& blocker);

/// From which GPU of its node a job moves to which, by index.
struct MoveView {
  int source = 0;
  int target = 0;

  friend bool operator==(const MoveView&, const MoveView&) = default;
};

/// A job as shown. Optional fields are null in JSON when they do not apply or are not known.
struct JobView {
  JobId id;
  JobSpec spec;
  Status status = Status::Queued;
  WallTime submitted;
  std::optional<WallTime> started;  ///< of the latest attempt
  std::optional<WallTime> ended;
  std::chrono::seconds run_time{0};      ///< so far, or in all; monotonic
  std::string node;                      ///< it is or was on; "" if it never started
  std::vector<int> gpu_indices;          ///< held there now, or by the last attempt
  std::vector<int> cpu_indices;          ///< the CPUs chosen for it there; empty: any
  std::vector<Allocation> peers;         ///< the same on its further nodes
  std::string node_list;                 ///< "0,1"; "n1:0,1 n2:3" where there are several nodes
  std::string placed_because;            ///< one line for people; "" where there was no choice
  std::vector<GpuMemoryUse> gpu_memory;  ///< while it has devices whose source tells
  std::optional<GpuLimits>
      gpu_limits;  ///< while it runs and shares a GPU: what holds it to its part
  /// While it runs: what keeps it from GPUs it was not given; empty where that is not gflow's
  /// doing.
  std::optional<GpuIsolation> gpu_isolation;
  /// Of one that is, or was, suspended in this attempt: where its GPU memory is, if that is not
  /// where it is without more ado.
  std::optional<ParkedMemory> parked;
  bool lends = false;  ///< its GPU is another's while it leaves it idle: it runs on
  /// While it moves from one GPU to another.
  std::optional<MoveView> move;
  std::string
      move_refused;  ///< why it stayed where it was when it was to move last; "": it did not
  /// While it runs: for how long no kernel was seen on any of its GPUs; empty: one was, or that is
  /// not told.
  std::optional<std::chrono::seconds> gpu_idle;
  int attempt = 0;  ///< 0: never started
  int retries = 0;
  int pid = 0;
  std::optional<Outcome> outcome;  ///< set once ended
  std::string reason;              ///< what NODELIST(REASON) says in brackets; "" while it runs
  std::vector<BlockerView> blockers;
  std::string log_path;

  friend bool operator==(const JobView&, const JobView&) = default;
};

struct JobPage {
  std::vector<JobView> jobs;
  std::string next;                 ///< ask again with after= this for more; "" if these were all
  std::optional<JobId> next_after;  ///< the same by number; only in the order by id
  std::uint64_t revision = 0;
};

/// A device and who has it.
struct DeviceView {
  Device device;
  std::vector<JobId> jobs;             ///< gflow's on it; several if they share it
  std::size_t other_jobs = 0;          ///< so many more, which who asks is not shown
  std::vector<DeviceProcess> foreign;  ///< processes that are not gflow's
  std::string model_short;             ///< the catalogue's name, as --gpus '1(A100)' takes it
  bool drained = false;                ///< an administrator lets nothing new start on it
  std::string drained_reason;
  std::optional<GpuMode> mode;  ///< of the jobs on it; empty if there are none
  std::vector<TimeSliceShare>
      time_slices;                    ///< of jobs that take turns: the part of the time each has
  Share share_free;                   ///< of its compute
  std::optional<Memory> memory_free;  ///< that can be promised to a job; empty: not known
  DeviceBar bar = DeviceBar::None;    ///< why nothing new may start on it, if so
  [[nodiscard]] bool has_jobs() const { return !jobs.empty() || other_jobs > 0; }
  /// A job could have all of it now.
  [[nodiscard]] bool available() const { return !has_jobs() && bar == DeviceBar::None; }
};

/// A node on which launches fail.
struct UnhealthyNode {
  std::string node;
  std::string reason;                ///< of the last failed launch
  int failures = 0;                  ///< in a row
  std::optional<WallTime> retry_at;  ///< empty: the next job is launched to find out

  friend bool operator==(const UnhealthyNode&, const UnhealthyNode&) = default;
};

/// A GPU of which slices of MIG are made as jobs request them.
struct MigRoomView {
  std::string gpu;                    ///< UUID
  std::string model_short;            ///< "H100-80G"
  std::vector<std::string> profiles;  ///< of one more slice that could be made of what is free
  std::string trouble;                ///< why none can; "" if all is well
  std::string refused;                ///< what the driver did not do when last asked; "": nothing
  bool drained = false;               ///< none is made of it, nor started on
  std::string drained_reason;

  friend bool operator==(const MigRoomView&, const MigRoomView&) = default;
};

/// A node and what is on it.
struct NodeView {
  std::string name;
  std::string unreachable;  ///< why nothing is placed there; "" if it answers
  std::string removed;      ///< why it goes with the last job that holds something there
  bool drained = false;     ///< an administrator lets nothing new start on it
  std::string drained_reason;
  std::string source;
  std::string note;
  std::string driver;
  std::vector<Label> labels;
  std::vector<DeviceView> devices;
  std::vector<MigRoomView> mig_room;
  std::vector<Drain> drained_absent;  ///< devices that are drained and not among these now
  TopologyView topology;              ///< of the devices
  int cpus = 0;
  int cpus_free = 0;
  Memory memory;
  Memory memory_free;
};

/// The answer to GET /api/v1/machine.
struct MachineView {
  std::vector<NodeView> nodes;  ///< by name
  std::vector<UnhealthyNode> unhealthy;
  int cpus = 0;  ///< of all nodes, as all that follows
  int cpus_free = 0;
  Memory memory;
  Memory memory_free;
  std::vector<JobView> running;  ///< jobs that hold anything
  std::uint64_t queued = 0;
  std::uint64_t held = 0;
  std::uint64_t revision = 0;
};

/// The answer to GET /version.
struct VersionView {
  std::string version;  ///< of the program that answers
};

/// The answer to GET /api/v1/daemon.
struct DaemonView {
  std::string version;
  int pid = 0;
  WallTime started;
  std::string mode;  ///< "user" or "system"
  std::string socket;
  std::string api_url;          ///< "http://127.0.0.1:8000"; "" if only the socket is served
  std::string tls_url;          ///< "https://0.0.0.0:8443", for other machines; "" if there is none
  std::string tls_fingerprint;  ///< of its certificate: "SHA256:9f86..."
  std::optional<WallTime> tls_expires;  ///< the same
  std::string state_dir;
  std::string log_path;  ///< the daemon's own log
  std::string config_path;
  /// Settings that say something else by now, and change when gflowd is restarted.
  std::vector<std::string> settings_for_restart;
  std::string devices;  ///< the specification it was started with
  std::string enforcement_kill;
  std::string enforcement_memory;
  std::string enforcement_cpu;
  std::string enforcement_processes;
  std::string enforcement_suspend;
  std::string enforcement_binding;
  std::string enforcement_gpu_memory;
  std::string enforcement_gpu_compute;
  std::string enforcement_gpu_isolation;
  std::string enforcement_parking;    ///< of GPU memory; "" where there is none to be parked
  std::vector<std::string> warnings;  ///< disk nearly full, probe does not answer, ...
  std::chrono::seconds up_time{0};    ///< by the time that passed, whatever the clock says
};

/// "user" or "system", for people.
[[nodiscard]] std::string mode_text(const DaemonView& daemon);

/// The body of POST /api/v1/jobs. Identity comes from the socket, not from here.
struct SubmitRequest {
  struct Item {
    JobSpec spec;  ///< spec.user is not on the wire; name "" asks for one to be made up
    Payload payload;
    std::vector<std::size_t> depends_on_siblings;  ///< positions in this request
    /// Position of an item before this one that is like no other. `spec` is as there but for name
    /// and command; `payload` is what is set over the one there (core/task_payload.h).
    std::optional<std::size_t> like = {};
    /// It stands for these tasks of an array, a job each, with ids one behind the other. Each has
    /// GFLOW_ARRAY_TASK_ID set to its number, and is called NAME_NUMBER where a name is given.
    std::optional<TaskRange> tasks = {};

    [[nodiscard]] std::uint64_t count() const { return tasks ? tasks->count : 1; }
  };
  std::vector<Item> items;
  [[nodiscard]] std::uint64_t count() const;  ///< of jobs
  std::string idempotency_key;                ///< header Idempotency-Key
  std::string digest;                         ///< of the body, where a key has to be compared by it
};
struct SubmitAnswer {
  struct Item {
    JobId id;
    std::string name;
    Status status = Status::Queued;
    std::string reason;
    std::string advice;  ///< about what it asked for; "" if there is none
    /// How many jobs it is about, with ids one behind the other from `id` on, which is the first of
    /// them: those of an item with `tasks`.
    std::uint64_t count = 1;
  };
  std::vector<Item> items;
};

/// Jobs that one request may change. Others wait for some tenths of a second meanwhile.
constexpr std::size_t kMaxJobsChangedAtOnce = 10'000;

/// The body of POST /api/v1/jobs/{cancel,signal,hold,release,suspend,resume} and of PATCH
/// /api/v1/jobs.
struct JobsRequest {
  std::vector<JobId> jobs;
  int signal = 0;              ///< cancel (0: SIGTERM), signal (1..64)
  std::optional<WallTime> at;  ///< release
};
/// The body of POST /api/v1/jobs/{id}/move.
struct MoveRequest {
  std::optional<int> gpu;     ///< its index; empty: one is chosen
  bool running_only = false;  ///< also where what it starts later would not be on the new one
};
struct UpdateRequest {
  std::vector<JobId> jobs;
  JobChanges changes;
};

}  // namespace gflow::api
