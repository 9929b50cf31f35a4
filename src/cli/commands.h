// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "command/command.h"

/// The table of each command. Adding one touches its file and suite().
namespace gflow::cli {

[[nodiscard]] Command gbatch_command();
[[nodiscard]] Command gqueue_command();
[[nodiscard]] Command ginfo_command();
[[nodiscard]] Command gcancel_command();
[[nodiscard]] Command gjob_command();
[[nodiscard]] Command gctl_command();
[[nodiscard]] Command doctor_command();
[[nodiscard]] Command spec_command();

/// The programs of their own, gbatch to gctl.
[[nodiscard]] const std::vector<Command>& suite();

}  // namespace gflow::cli
