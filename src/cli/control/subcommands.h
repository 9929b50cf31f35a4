// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command/command.h"

namespace gflow::cli {

[[nodiscard]] Command gctl_show_command();
[[nodiscard]] Command gctl_drain_command();
[[nodiscard]] Command gctl_resume_command();
[[nodiscard]] Command gctl_defrag_command();
[[nodiscard]] Command gctl_snapshot_command();
[[nodiscard]] Command gctl_config_command();
[[nodiscard]] Command gctl_token_command();
[[nodiscard]] Command gctl_remote_command();
[[nodiscard]] Command gctl_whoami_command();

}  // namespace gflow::cli
