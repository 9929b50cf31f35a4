// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/fd.h"

namespace gflow::os {

/// A process in which a program is to run in place of this one at its terminal: with its streams
/// and in its process group. It waits until it is told to go on, and ends if this one ends before.
class HeldChild {
 public:
  /// Of a process with one thread. Errors: what the system said.
  [[nodiscard]] static Result<HeldChild> start();

  [[nodiscard]] int pid() const { return pid_; }
  /// Readable once it has ended.
  [[nodiscard]] int fd() const { return process_.get(); }
  /// Has it become the program, looked for as a shell does, with no signal blocked or ignored and
  /// these variables besides this process's. Errors: the name and what the system said.
  [[nodiscard]] Result<void> become(const std::vector<std::string>& argv,
                                    const std::vector<std::string>& environment);
  /// Sends a signal to the program and all it has started; 0 sends none. How many there are. To be
  /// asked of the one there is in a process: what loses its parent becomes this process's child.
  [[nodiscard]] static std::size_t signal_all(int number);
  /// Waits for its end. As shells have it: its exit code, or 128 and the signal that ended it.
  [[nodiscard]] int wait_for_exit_code();

 private:
  int pid_ = 0;
  Fd process_;
  Fd orders_;    ///< what it is to become; closed without that, it ends
  Fd failures_;  ///< why it could not
};

}  // namespace gflow::os
