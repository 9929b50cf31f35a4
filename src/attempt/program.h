// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What to hand to execve(2), worked out here so that it can be tested and does not depend on the
/// file system a script lies on allowing execution.
namespace gflow::attempt {

/// The "#!" line of a script.
struct Shebang {
  std::string interpreter;
  std::string argument;  ///< the rest of the line as one argument, as Linux does; "" if none
  friend bool operator==(const Shebang&, const Shebang&) = default;
};
/// `start`: the first bytes of the script, 4096 are enough. Empty if it has no such line.
[[nodiscard]] std::optional<Shebang> parse_shebang(std::string_view start);

/// The paths to try for a program, in order: itself if it has a slash, else the directories of PATH
/// in the environment (/usr/local/bin:/usr/bin:/bin if that is not set).
[[nodiscard]] std::vector<std::string> program_paths(std::string_view program,
                                                     std::span<const std::string> environment);

}  // namespace gflow::attempt
