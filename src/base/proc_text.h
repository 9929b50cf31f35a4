// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Readers of what the kernel writes in /proc and in control groups.
namespace gflow {

/// What /proc/<pid>/stat says that matters here.
struct ProcessFacts {
  std::int32_t pid = 0;
  std::int32_t parent = 0;
  char state = '?';
  std::uint64_t start_time = 0;  ///< clock ticks since boot
  /// It is still what it was forked from: no execve(2) of it has succeeded. The kernel keeps that
  /// of the dead, too, until they are waited for.
  bool never_executed = false;
  bool exiting = false;  ///< it ends: the kernel takes down what it had
  /// That have not ended. The first thread may have, which then gives the state; the others run on.
  std::int32_t threads = 1;

  [[nodiscard]] bool is_dead() const { return has_dead_leader() && threads <= 1; }
  [[nodiscard]] bool has_dead_leader() const { return state == 'Z' || state == 'X'; }
  /// By a signal or by a debugger.
  [[nodiscard]] bool is_stopped() const { return state == 'T' || state == 't'; }
  friend bool operator==(const ProcessFacts&, const ProcessFacts&) = default;
};
[[nodiscard]] std::optional<ProcessFacts> parse_proc_stat(std::string_view text);

/// The processes below `root`, not itself, parents before their children.
[[nodiscard]] std::vector<ProcessFacts> descendants_of(std::int32_t root,
                                                       const std::vector<ProcessFacts>& all);

/// The number after a key in a file of "key value" lines: cgroup.events, memory.events,
/// oom_control.
[[nodiscard]] std::optional<std::uint64_t> keyed_value(std::string_view text, std::string_view key);

/// The soft limit of file locks in /proc/<pid>/limits; empty if there is none.
[[nodiscard]] std::optional<std::uint64_t> file_lock_limit(std::string_view text);

/// Whether the process of /proc/<pid>/status is in a pid namespace below that of its reader, as one
/// in a container is: it has a pid in each of them.
[[nodiscard]] bool is_in_inner_namespace(std::string_view text);

/// The real user of the process of /proc/<pid>/status; empty if it does not say.
[[nodiscard]] std::optional<std::uint32_t> real_user(std::string_view text);

/// The pids in a file cgroup.procs, or in a file `children` of a thread.
[[nodiscard]] std::vector<std::int32_t> parse_pids(std::string_view text);

}  // namespace gflow
