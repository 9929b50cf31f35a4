// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"

namespace gflow::cli {

/// What lies at a path, as far as telling a script from a program needs it.
struct FileFacts {
  enum class Kind { Missing, Regular, Directory, Other };
  Kind kind = Kind::Missing;
  bool executable = false;
  std::string head;      ///< its first bytes, up to 4096
  std::string absolute;  ///< its path
};

/// The world classify() looks at.
struct Surroundings {
  std::function<FileFacts(const std::string& path)> look;
  std::function<bool(const std::string& name)> on_path;  ///< a program of that name is in PATH
  bool runs_elsewhere = false;  ///< a program that is not here may be where the job runs
};

/// The first word is a script: its content goes with the job.
struct ScriptJob {
  std::string path;
};
/// A program and its arguments.
struct CommandJob {
  std::vector<std::string> argv;
};
using Work = std::variant<ScriptJob, CommandJob>;

/// Tells what the words mean, in this order:
///  1. A program of PATH wins over a file of the same name that is neither "#!" nor *.sh: typing
///     `python` beside a folder `python` runs python, as in a shell.
///  2. A file that begins with "#!" or ends in .sh or .bash is a script; so is an executable text
///     file, and a file that is the only word, is text and has a shell's name or none.
///  3. Any other executable file is a command, by its absolute path.
///  4. One word with spaces or characters of the shell that is no file is a line for bash.
/// Errors: Usage for a folder, a text file no shell would run, a command of another gflow program;
/// NotFound for a path or program that is not there.
[[nodiscard]] Result<Work> classify(std::span<const std::string> words,
                                    const Surroundings& surroundings);

/// No NUL in the bytes: not a program.
[[nodiscard]] bool is_text(std::string_view head);

}  // namespace gflow::cli
