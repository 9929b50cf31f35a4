// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command/command.h"

namespace gflow::daemon {

/// gflowd: the daemon itself, and up, down, restart, reload, status.
[[nodiscard]] cli::Command gflowd_command();

}  // namespace gflow::daemon
