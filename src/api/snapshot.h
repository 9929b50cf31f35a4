// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"
#include "core/machine.h"

/// A live state to be replayed: machines, jobs, policy. No payloads, no environments, no command
/// lines. docs/format/snapshot.md describes the document.
namespace gflow::api {

struct SnapshotNode {
  std::string name;
  std::vector<Label> labels;  ///< sorted
  std::string source;
  int cpus = 0;
  Memory memory;
  std::vector<Device> devices;   ///< processes only those that are not gflow's
  std::string topology;          ///< as `nvidia-smi topo -m` writes it; "" if not known
  int link_speed = 0;            ///< MB/s of one direct link; 0: not known
  std::vector<int> path_speeds;  ///< MB/s by PathClass
};

struct SnapshotJob {
  JobId id;
  JobSpec spec;  ///< without command and work_dir
  Status status = Status::Queued;
  WallTime submitted;
  int attempts = 0;
  int preemptions = 0;
  std::chrono::milliseconds served{0};    ///< by the attempts before the present one
  std::optional<WallTime> started;        ///< of the present or last attempt
  std::chrono::milliseconds run_time{0};  ///< of that attempt, so far or in all
  std::optional<WallTime> ended;
  std::vector<Allocation> allocations;  ///< of a job that holds something, by node
};

struct Snapshot {
  static constexpr int kVersion = 1;

  int version = kVersion;
  WallTime taken;
  std::string hostname;
  JobId next_id{1};
  std::vector<Label> policy;  ///< name and value of each setting
  std::vector<SnapshotNode> nodes;
  std::vector<Drain> drains;
  std::vector<SnapshotJob> jobs;  ///< pending and active ones, then ended ones; each by id
  std::uint64_t left_out = 0;     ///< pending jobs beyond the most there can be
};

constexpr std::size_t kMaxSnapshotPending = 8000;
constexpr std::size_t kMaxSnapshotEnded = 4000;

[[nodiscard]] std::string write(const Snapshot& snapshot);
/// Errors: Usage for what is no snapshot, or of a version this program does not know.
[[nodiscard]] Result<Snapshot> read_snapshot(std::string_view json);

/// Names of users, jobs, projects and groups replaced by numbers; the same name by the same one.
[[nodiscard]] Snapshot anonymous(Snapshot snapshot);

/// The body of POST /api/v1/drain.
struct DrainRequest {
  std::string node;        ///< "" where there is only one
  std::optional<int> gpu;  ///< empty: the whole node
  std::string reason;
  bool resume = false;
};
[[nodiscard]] std::string write(const DrainRequest& request);
[[nodiscard]] Result<DrainRequest> read_drain_request(std::string_view json);

/// {"kind": "Drains", "drains": [..]}: the answer to GET /api/v1/drain.
[[nodiscard]] std::string write_drains(const std::vector<Drain>& drains);
[[nodiscard]] Result<std::vector<Drain>> read_drains(std::string_view json);

}  // namespace gflow::api
