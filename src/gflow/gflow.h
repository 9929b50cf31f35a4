// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command/command.h"

/// The program `gflow`, which is also each command of the suite by its name.
namespace gflow::cli {

/// The programs as subcommands, `spec`, `lab`, `doctor`, `man`.
[[nodiscard]] Command gflow_command();

/// The command line by the name the program was called by: "gqueue" or "gflow".
[[nodiscard]] int multicall_main(int argc, char** argv);

}  // namespace gflow::cli
