// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "os/fd.h"

namespace gflow::os {

/// A program started to be talked to: one socket is its stdin and its stdout.
struct Child {
  int pid = 0;
  Fd process;  ///< pidfd: readable once it has ended
  Fd channel;  ///< not blocking; its end of file is the child's
};

struct ChildOptions {
  std::vector<std::string> argv;  ///< argv[0] is the absolute path
  /// "NAME=value" to have besides this process's environment, or instead of what it has.
  std::vector<std::string> environment;
  int extra = -1;  ///< a descriptor of ours that becomes its descriptor 3; -1: none
};

/// Starts it in a process group of its own, with no signal blocked or ignored and nothing of ours
/// open but stderr and `extra`. Errors: the path and what the system said.
[[nodiscard]] Result<Child> start_child(const ChildOptions& options);

/// Takes note of its end so that no zombie stays; true if it has ended. Never blocks.
[[nodiscard]] bool reap(const Child& child);

}  // namespace gflow::os
