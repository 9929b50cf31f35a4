// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/time.h"
#include "core/job.h"
#include "core/machine.h"

namespace gflow {

/// Why a job does not run now, as data. A job has every one that applies, not only the first.
namespace blocker {

struct OnHold {
  std::string why;  ///< "" if the user asked for it
  friend bool operator==(const OnHold&, const OnHold&) = default;
};
/// Suspended by hand: it goes on when it is resumed.
struct Suspended {
  std::string by;  ///< name of who did it
  friend bool operator==(const Suspended&, const Suspended&) = default;
};
struct BeginTime {
  WallTime at;
  friend bool operator==(const BeginTime&, const BeginTime&) = default;
};
/// A running job that holds what is waited for.
struct Holder {
  JobId job;
  std::string user;
  std::vector<int> gpus;
  std::optional<WallTime> ends;  ///< at the latest: by its time limit or a stop; empty: neither
  friend bool operator==(const Holder&, const Holder&) = default;
};
struct Dependency {
  std::vector<JobId> waiting_for;
  DependencyMode mode = DependencyMode::All;
  bool never = false;             ///< cannot be satisfied any more
  std::optional<Status> end{};    ///< never: how the first of them ended; empty if it is forgotten
  std::vector<Holder> holders{};  ///< those of them that run, at most 64
  friend bool operator==(const Dependency&, const Dependency&) = default;
};
/// A device no job can have now though no job holds it.
struct Unusable {
  int gpu = 0;
  std::string trouble;                   ///< the device itself; "" if only used by others
  bool drained = false;                  ///< an administrator took it out
  std::string drained_reason;            ///< why, if that was said
  std::vector<DeviceProcess> processes;  ///< that are not gflow's
  friend bool operator==(const Unusable&, const Unusable&) = default;
};
struct Gpus {
  int need = 0;
  int available = 0;
  std::string kind;  ///< vendor and models asked for, "V100" or "A100|H100"; "" is any
  std::vector<Holder> holders;
  std::vector<Unusable> unusable;
  std::string node{};  ///< that comes closest; "" where there is only one
  friend bool operator==(const Gpus&, const Gpus&) = default;
};
/// Devices could be had, but not with the memory that was declared free.
struct GpuMemory {
  Memory need;     ///< on each device
  Memory missing;  ///< on the device that comes closest
  int gpus = 1;
  std::vector<Holder> holders;
  std::string node{};  ///< that comes closest; "" where there is only one
  friend bool operator==(const GpuMemory&, const GpuMemory&) = default;
};
/// Devices could be had, but not with this much of their compute.
struct GpuShare {
  Share need;
  Share missing;  ///< on the device that comes closest
  std::vector<Holder> holders;
  std::string node{};  ///< that comes closest; "" where there is only one
  friend bool operator==(const GpuShare&, const GpuShare&) = default;
};
/// Not enough nodes at once have room for their part.
struct Nodes {
  int need = 0;
  int available = 0;
  friend bool operator==(const Nodes&, const Nodes&) = default;
};
/// An administrator lets nothing new start on the node, or it does not answer.
enum class Closed { Drained, Unreachable };
struct NodeClosed {
  std::string node;
  std::string reason;
  Closed closed = Closed::Drained;
  friend bool operator==(const NodeClosed&, const NodeClosed&) = default;
};
/// Launches fail on the node for reasons that are not the job's.
struct NodeUnhealthy {
  std::string node;
  std::string reason;
  std::chrono::milliseconds wait{0};  ///< until the next try; 0: one is under way
  friend bool operator==(const NodeUnhealthy&, const NodeUnhealthy&) = default;
};
/// Room is being made: these jobs were told to stop or suspended for it.
struct Preemption {
  std::vector<JobId> jobs;  ///< none are named to who does not see them
  friend bool operator==(const Preemption&, const Preemption&) = default;
};
struct HostMemory {
  Memory need;
  Memory available;
  std::vector<Holder> holders;
  std::string node{};  ///< that comes closest; "" where there is only one
  friend bool operator==(const HostMemory&, const HostMemory&) = default;
};
struct Cpus {
  int need = 0;
  int available = 0;
  std::vector<Holder> holders;
  std::string node{};  ///< that comes closest; "" where there is only one
  friend bool operator==(const Cpus&, const Cpus&) = default;
};
/// It would fit, but could delay a job ahead of it that is waiting for the same things.
struct Priority {
  JobId behind;                           ///< not set for who does not see it
  std::optional<WallTime> reserved_from;  ///< when that job is expected to start, if known
  friend bool operator==(const Priority&, const Priority&) = default;
};
struct GroupLimit {
  std::string group;  ///< "" for who is not shown its name
  int limit = 0;
  std::vector<Holder> holders{};  ///< jobs of the group that run, at most 64
  friend bool operator==(const GroupLimit&, const GroupLimit&) = default;
};
/// So many jobs of its user that reserve no GPUs and no CPUs run already.
struct UserLimit {
  std::size_t limit = 0;
  friend bool operator==(const UserLimit&, const UserLimit&) = default;
};
/// It would take its user over what jobs of one user may hold of GPUs at once.
struct GpuLimit {
  Share need;
  Share held;
  Share limit;
  std::vector<Holder> holders;      ///< the user's jobs that hold GPUs
  std::optional<WallTime> until{};  ///< enough of them have ended, at their time limits; if known
  friend bool operator==(const GpuLimit&, const GpuLimit&) = default;
};
/// So many jobs start together, with this one: too few of them wait, or there is room for too few.
struct Gang {
  std::size_t need = 0;
  std::size_t waiting = 0;
  std::optional<std::size_t> room{};  ///< for so many, where enough wait; empty: that is not known
  friend bool operator==(const Gang&, const Gang&) = default;
};
/// No slice of MIG is free that it could have, on GPUs of which gflow makes slices.
struct Slice {
  std::string profile;    ///< "3g.40gb"
  bool is_made = false;   ///< it is being made, for it or for one ahead of it
  std::string trouble{};  ///< why it is not made, or is not yet; "" where there is no room for it
  friend bool operator==(const Slice&, const Slice&) = default;
};
/// An attempt was not started or was lost; the next one is made after a pause.
struct LaunchBackoff {
  int failures = 0;  ///< in a row
  std::chrono::milliseconds wait{0};
  std::string why{};  ///< what happened to the last attempt; "" if that is not known any more
  friend bool operator==(const LaunchBackoff&, const LaunchBackoff&) = default;
};

}  // namespace blocker

using Blocker = std::variant<blocker::OnHold,
                             blocker::BeginTime,
                             blocker::Dependency,
                             blocker::Gpus,
                             blocker::GpuMemory,
                             blocker::GpuShare,
                             blocker::Nodes,
                             blocker::NodeClosed,
                             blocker::NodeUnhealthy,
                             blocker::Preemption,
                             blocker::HostMemory,
                             blocker::Cpus,
                             blocker::Priority,
                             blocker::GroupLimit,
                             blocker::LaunchBackoff,
                             blocker::UserLimit,
                             blocker::Suspended,
                             blocker::GpuLimit,
                             blocker::Gang,
                             blocker::Slice>;

/// Which kind of Blocker, in the order of its alternatives.
enum class BlockerKind {
  OnHold,
  BeginTime,
  Dependency,
  Gpus,
  GpuMemory,
  GpuShare,
  Nodes,
  NodeClosed,
  NodeUnhealthy,
  Preemption,
  HostMemory,
  Cpus,
  Priority,
  GroupLimit,
  LaunchBackoff,
  UserLimit,
  Suspended,
  GpuLimit,
  Gang,
  Slice,
};
inline constexpr std::array<std::string_view, std::variant_size_v<Blocker>> kBlockerKinds = {
    "hold",       "begin",     "dependency",  "gpus",           "gpu_memory",
    "gpu_share",  "nodes",     "node_closed", "node_unhealthy", "preemption",
    "memory",     "cpus",      "priority",    "group_limit",    "launch_backoff",
    "user_limit", "suspended", "gpu_limit",   "gang",           "slice"};
[[nodiscard]] constexpr BlockerKind blocker_kind(const Blocker& blocker) {
  return static_cast<BlockerKind>(blocker.index());
}
/// As JSON has it: "gpu_memory".
[[nodiscard]] constexpr std::string_view blocker_kind_name(BlockerKind kind) {
  return kBlockerKinds.at(static_cast<std::size_t>(kind));
}

/// Stable machine-readable name: "Resources", "Priority", "Dependency", "BeginTime", "Held", ...
[[nodiscard]] std::string_view blocker_code(const Blocker& blocker);
/// What stands in NODELIST(REASON) without the brackets: "Resources: Need 4 GPUs, only 1
/// available", "Resources" where nothing at all is available, "Dependency: 3,5", "Priority",
/// "JobHeldUser".
[[nodiscard]] std::string blocker_text(const Blocker& blocker);
/// "Need 4 GPUs, only 1 available", "Need 4 V100 GPUs, none available".
[[nodiscard]] std::string gpu_shortage_text(std::int64_t need,
                                            std::int64_t available,
                                            const std::string& kind = {});
/// The same for a whole list: the first blocker is the one to name. "" for none.
[[nodiscard]] std::string reason_text(const std::vector<Blocker>& blockers);
/// As users other than the job's owner may read it.
[[nodiscard]] Blocker public_part(Blocker blocker);

}  // namespace gflow
