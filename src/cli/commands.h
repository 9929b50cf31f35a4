// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "cli/command/command.h"

/// The table of each command. Adding one touches its file and suite().
namespace gflow::cli {

[[nodiscard]] Command gbatch_command();
[[nodiscard]] Command gqueue_command();
[[nodiscard]] Command ginfo_command();
[[nodiscard]] Command gcancel_command();
[[nodiscard]] Command gjob_command();
[[nodiscard]] Command gctl_command();
[[nodiscard]] Command lab_command();
[[nodiscard]] Command doctor_command();
[[nodiscard]] Command spec_command();
/// `gflow` itself: the programs as subcommands, `spec`, `doctor`, `man`.
[[nodiscard]] Command gflow_command();

/// The programs of their own, gbatch to gctl.
[[nodiscard]] const std::vector<Command>& suite();

/// The command line by the name the program was called by: "gqueue" or "gflow".
[[nodiscard]] int multicall_main(int argc, char** argv);

}  // namespace gflow::cli
