// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gflow::os {

/// The gflowd that keeps a state directory, as it wrote itself into the lock there.
struct LockHolder {
  int pid = 0;
  std::string socket;  ///< where it listens, or will; "" in a lock of an older gflowd
  /// What makes another one like it, "--devices=sim:8xH100"; none that has a line feed.
  std::vector<std::string> arguments{};
};

/// A line each: pid, socket, arguments.
[[nodiscard]] std::string lock_text(const LockHolder& holder);
/// What the lock file says; its writer may have ended since. Empty if it names no process.
[[nodiscard]] std::optional<LockHolder> read_lock(const std::string& path);
/// The same if that process holds the lock; empty, too, where the kernel does not tell us of it.
[[nodiscard]] std::optional<LockHolder> lock_holder(const std::string& path);
/// The process that has it locked, whichever program it is; empty where the kernel does not tell
/// us.
[[nodiscard]] std::optional<int> lock_owner(const std::string& path);

/// 'R', 'S', 'D', 'T', ... of /proc/PID/stat; '?' if that cannot be read.
[[nodiscard]] char process_state(int pid);
/// Whether it was killed, or ends, and the kernel still takes down what it had: that takes a while
/// where it had much memory, and it keeps its locks meanwhile.
[[nodiscard]] bool is_dying(int pid);
/// What a person is told of one that does not answer: "gflowd (pid 12) does not answer; it is
/// stopped (T): 'kill -CONT 12' lets it go on".
[[nodiscard]] std::string silence_text(int pid);

}  // namespace gflow::os
