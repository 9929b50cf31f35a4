// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/refusal.h"
#include "core/job.h"
#include "core/machine.h"

/// A live state to be replayed: all that decides, so that a replay decides the same. No payloads,
/// no environments; of command lines only which are of one program. docs/format/snapshot.md
/// describes the document.
namespace gflow::api {

struct SnapshotNode {
  std::string name;
  std::vector<Label> labels;  ///< sorted
  std::string source;
  int cpus = 0;
  Memory memory;
  std::vector<Device> devices;               ///< processes only those that are not gflow's
  std::string topology;                      ///< as `nvidia-smi topo -m` writes it; "" if not known
  int link_speed = 0;                        ///< MB/s of one direct link; 0: not known
  std::vector<int> path_speeds;              ///< MB/s by PathClass
  std::optional<std::string> unreachable{};  ///< why it does not answer
};

/// A node on which launches fail: NodeHealth.
struct SnapshotHealth {
  std::string node;
  std::string reason;
  int failures = 0;
  std::chrono::milliseconds retry_at{0};
  std::optional<JobId> trial{};
  std::vector<JobId> tried;
};

struct SnapshotJob {
  JobId id;
  JobSpec spec;  ///< without work_dir; command is "program3" or "": the same for the same program
  Status status = Status::Queued;
  WallTime submitted;
  int attempts = 0;
  int preemptions = 0;
  std::chrono::milliseconds served{0};  ///< by the attempts before the present one
  /// GPU time of these; empty in snapshots of old.
  std::optional<std::chrono::milliseconds> served_gpu_time{};
  std::optional<WallTime> started;        ///< of the present or last attempt
  std::chrono::milliseconds run_time{0};  ///< of that attempt, so far or in all
  std::optional<WallTime> ended;
  std::vector<Allocation> allocations;  ///< of a job that holds something, by node
  // All that is said to be at a time gflow had seen pass is on the clock of Snapshot::lived; empty
  // in snapshots of old.
  std::optional<std::chrono::milliseconds> lived{};        ///< when it was submitted
  std::optional<std::chrono::milliseconds> ended_lived{};  ///< when it ended
  int retries = 0;   ///< of its attempts, those that replaced a failed one
  int requeues = 0;  ///< how often in a row it was queued again for no fault of its own
  std::optional<std::chrono::milliseconds> not_before{};     ///< its pause after that
  std::optional<std::chrono::milliseconds> preemption_at{};  ///< when others made room for it
  std::vector<JobId> victims{};                              ///< these
  std::string requeue_why{};                   ///< what happened to the attempt before its pause
  std::string held_why{};                      ///< on hold: "" if its user asked for it
  std::optional<EndReason> stop{};             ///< why it was told to stop
  bool suspended = false;                      ///< also where it was told to stop then
  bool suspended_by_hand = false;              ///< so that it does not go on by itself
  std::chrono::milliseconds suspended_for{0};  ///< before that, in its present attempt
  bool lends = false;                          ///< its idle GPU is another's
  std::optional<EndReason> reason{};           ///< of its end
  Memory peak_gpu_memory{};                    ///< most on one device; 0: not known
};

struct Snapshot {
  static constexpr int kVersion = 1;

  int version = kVersion;
  WallTime taken;
  std::string hostname;
  JobId next_id{1};
  std::optional<std::chrono::milliseconds> lived{};  ///< the time gflow had seen pass
  std::vector<Label> policy;                         ///< name and value of each setting
  std::vector<SnapshotNode> nodes;
  std::vector<Drain> drains;
  std::vector<SnapshotHealth> unhealthy;
  std::vector<SnapshotJob> jobs;  ///< pending and active ones, then ended ones; each by id
  /// Pending jobs beyond the most there can be, and those that who asks is shown nothing of.
  std::uint64_t left_out = 0;
};

constexpr std::size_t kMaxSnapshotPending = 8000;
constexpr std::size_t kMaxSnapshotEnded = 4000;

[[nodiscard]] std::string write(const Snapshot& snapshot);
/// Errors: Usage for what is no snapshot, or of a version this program does not know.
[[nodiscard]] Result<Snapshot> read_snapshot(std::string_view json);

/// Names of users, jobs, projects and groups replaced by numbers; the same name by the same one.
/// `names_users`: whether a setting of the policy does, as "alice=8, bob=0".
[[nodiscard]] Snapshot anonymous(Snapshot snapshot,
                                 const std::function<bool(std::string_view setting)>& names_users);

/// The body of POST /api/v1/drain.
struct DrainRequest {
  std::string node;        ///< "" where there is only one
  std::optional<int> gpu;  ///< of one that is there; empty, without `uuid`: the whole node
  std::string uuid;  ///< of a GPU, also of a drained one that is not there; "" for one by index
  std::string reason;
  bool resume = false;
};
[[nodiscard]] std::string write(const DrainRequest& request);
[[nodiscard]] Asked<DrainRequest> read_drain_request(std::string_view json);

/// A drain, and whether what it is of is there.
struct DrainView {
  Drain drain;
  bool present = true;  ///< false: known again by its UUID, or by its name, when it comes back
};

/// {"kind": "Drains", "drains": [..]}: the answer to GET /api/v1/drain.
[[nodiscard]] std::string write_drains(const std::vector<DrainView>& drains);
[[nodiscard]] Result<std::vector<DrainView>> read_drains(std::string_view json);

}  // namespace gflow::api
