// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command/command.h"

/// The subcommands of gjob, a file each.
namespace gflow::cli {

[[nodiscard]] Command job_show_command();
[[nodiscard]] Command job_why_command();
[[nodiscard]] Command job_log_command();
[[nodiscard]] Command job_wait_command();
[[nodiscard]] Command job_hold_command();
[[nodiscard]] Command job_release_command();
[[nodiscard]] Command job_suspend_command();
[[nodiscard]] Command job_resume_command();
[[nodiscard]] Command job_move_command();
[[nodiscard]] Command job_update_command();

}  // namespace gflow::cli
