// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "command/command.h"

/// The table of each command. Adding one touches its file and kPrograms.
namespace gflow::cli {

[[nodiscard]] Command gbatch_command();
[[nodiscard]] Command galloc_command();
[[nodiscard]] Command gqueue_command();
[[nodiscard]] Command gtop_command();
[[nodiscard]] Command ginfo_command();
[[nodiscard]] Command gcancel_command();
[[nodiscard]] Command gjob_command();
[[nodiscard]] Command gstats_command();
[[nodiscard]] Command gctl_command();
[[nodiscard]] Command doctor_command();
[[nodiscard]] Command spec_command();

/// A program of its own. Its table is made where it is asked for: a program that starts needs one
/// of them.
struct Program {
  std::string_view name;
  Command (*command)();
};
inline constexpr std::array kPrograms = {Program{"gbatch", gbatch_command},
                                         Program{"galloc", galloc_command},
                                         Program{"gqueue", gqueue_command},
                                         Program{"ginfo", ginfo_command},
                                         Program{"gtop", gtop_command},
                                         Program{"gcancel", gcancel_command},
                                         Program{"gjob", gjob_command},
                                         Program{"gstats", gstats_command},
                                         Program{"gctl", gctl_command}};

/// The tables of all of them.
[[nodiscard]] std::vector<Command> suite();

}  // namespace gflow::cli
