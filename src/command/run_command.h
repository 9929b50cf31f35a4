// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "command/command.h"

namespace gflow::cli {

/// Runs a command line by its table: parsing, `--help`, `--version`, `completion SHELL`, errors on
/// stderr as "gqueue: ...". Returns the exit code. argv[0] is not looked at.
[[nodiscard]] int run_command(const Command& command, std::span<const std::string> arguments);
[[nodiscard]] int run_command(const Command& command, int argc, char** argv);

/// What a command does that only has subcommands: prints its help.
[[nodiscard]] Result<int> run_help(const Invocation& invocation, Context& context);

/// "gqueue 0.1.0"
[[nodiscard]] std::string version_line(const std::string& program);

}  // namespace gflow::cli
