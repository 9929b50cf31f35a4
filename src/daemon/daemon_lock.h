// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "os/fd.h"

namespace gflow::daemon {

/// The lock that makes this the only daemon of the state directory, with our pid in it; held as
/// long as the descriptor is open. Errors: WrongState naming the pid of the one that has it.
[[nodiscard]] Result<os::Fd> take_daemon_lock(const std::string& path);

}  // namespace gflow::daemon
