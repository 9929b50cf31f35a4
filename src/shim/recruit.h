// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "attempt/order.h"
#include "shim/fd.h"
#include "shim/io.h"

namespace gflow::shim {

/// A process that is in its control groups already and waits to be told what job it is to become:
/// joining a group of cgroup v1 takes the kernel 5 to 30 ms, in which nobody waits for this one.
/// It ends when its shim does.
struct Recruit {
  pid_t pid = -1;
  Fd orders;  ///< to it
};

/// What a recruit is told.
struct Enlistment {
  attempt::Order order;
  std::vector<std::string> joined;  ///< what the order calls the groups it was made to join
  Fd log;                           ///< of the job; invalid if there is none
  int log_error = 0;                ///< then: errno
  Fd result;                        ///< the pipe for a LaunchFailure
  Fd record;                        ///< where it notes its pid
};

/// Tells it. False if it is no more: then it has not become the job and never will.
[[nodiscard]] bool enlist(const Recruit& recruit, const Enlistment& what);
/// Waits to be told; empty if the shim has ended, or this cannot be understood.
[[nodiscard]] std::optional<Enlistment> wait_to_be_enlisted(const Fd& orders);

}  // namespace gflow::shim
