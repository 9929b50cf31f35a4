// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/result.h"
#include "os/fd.h"
#include "os/lock_holder.h"

namespace gflow::daemon {

/// The lock that makes this the only daemon of the state directory, with who we are in it; held as
/// long as the descriptor is open. Errors: WrongState naming the pid of the one that has it.
[[nodiscard]] Result<os::Fd> take_daemon_lock(const std::string& path, const os::LockHolder& self);

/// Waits until a daemon that was killed has gone, if the lock names such a one; says which it waits
/// for if that takes longer than a person waits in silence. Errors: Timeout after 5 minutes.
[[nodiscard]] Result<void> wait_for_dying(const std::string& path,
                                          const std::function<void(int pid)>& say);
/// Errors: Timeout saying so if the process is stopped: it answers nothing and hears no SIGTERM.
/// One under a debugger is stopped at each look of that, and may answer all the same.
[[nodiscard]] Result<void> check_not_stopped(const os::LockHolder& holder);
/// By a signal. Errors: Timeout for one that is stopped.
[[nodiscard]] Result<void> tell_to_end(const os::LockHolder& holder);
/// Tells that gflowd to end and waits until it has; jobs keep running. Errors: Timeout after 30 s,
/// and at once for one that is stopped.
[[nodiscard]] Result<void> end_holder(const os::LockHolder& holder);
/// Waits until a process has ended. Errors: Timeout.
[[nodiscard]] Result<void> wait_until_gone(int pid, std::chrono::seconds most);

}  // namespace gflow::daemon
