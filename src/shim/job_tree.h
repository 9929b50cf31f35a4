// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "attempt/order.h"
#include "shim/fd.h"

namespace gflow::shim {

/// All processes of the job, wherever they put themselves: the shim is their subreaper, so every
/// one is its descendant; and, where there is a control group, they are in it.
class JobTree {
 public:
  explicit JobTree(const attempt::Order& order);

  /// Sends a signal to each of them. One that is born meanwhile may not get it.
  void send(int number) const;
  /// The same to every one that is there, and wakes those that are stopped. What they start once
  /// they have it, to clean up, does not get it.
  void signal(int number) const;
  /// Stops every process where it stands: by freezing the control group where there is one, which
  /// the job cannot see or undo, else with SIGSTOP. Safe to repeat.
  void suspend();
  /// Lets those go on that suspend() stopped.
  void resume();
  /// Leaves none: through cgroup.kill where there is one, else by stopping all, until no new one is
  /// seen, and killing what was stopped. Has to be repeated while there are any.
  void kill() const;
  /// Whether the control group still has a process. False where there is none: then only wait(2)
  /// tells. Reading it arms events_fd().
  [[nodiscard]] bool cgroup_populated() const;
  /// Becomes POLLPRI when cgroup_populated() may have changed; -1 where there is no control group.
  [[nodiscard]] int events_fd() const { return events_.get(); }

  /// Whether a process is there and is none of them. One that is gone may have been one.
  [[nodiscard]] static bool is_outside(std::int32_t pid);

  [[nodiscard]] std::uint32_t oom_kills() const;
  /// Most memory the job had at once; empty if the control group does not say.
  [[nodiscard]] std::optional<std::int64_t> peak_memory() const;

 private:
  void stop_and_kill() const;
  static void kill_without_first_thread();

  std::string kill_file_;
  std::string freeze_file_;
  std::set<std::pair<std::int32_t, std::uint64_t>> stopped_;  ///< by SIGSTOP: pid and start time
  std::string memory_dir_;
  Fd events_;
};

}  // namespace gflow::shim
