// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "command/command.h"

namespace gflow::cli {

/// One thing the word being typed could become.
struct Candidate {
  std::string word;
  std::string text;  ///< said beside it where the shell can; may be empty

  friend bool operator==(const Candidate&, const Candidate&) = default;
};

/// What the shell is told: candidates, or to complete something it knows better.
struct Completion {
  enum class Kind { Words, Files, Directories, Command };
  Kind kind = Kind::Words;
  std::size_t command_at = 0;  ///< Kind::Command: which word, from 1, starts that command line
  std::vector<Candidate> candidates;

  friend bool operator==(const Completion&, const Completion&) = default;
};

/// Candidates only the daemon knows: jobs, users, GPUs.
using Lookup = std::function<std::vector<Candidate>(Complete)>;

/// Completes the last of `words` (what was typed after the program's name, the last one so far).
[[nodiscard]] Completion complete(const Command& command,
                                  std::span<const std::string> words,
                                  const Lookup& lookup);
/// As the completion scripts read it: a line ":words", ":files", ":directories" or ":command N",
/// then a line per candidate: the word, a tab, its text.
[[nodiscard]] std::string completion_answer(const Completion& completion);

/// The script for bash, zsh or fish, which asks `<command> __complete` for candidates, so that it
/// need not change when options do. Errors: Code::Usage for another shell.
[[nodiscard]] Result<std::string> completion_script(std::string_view command,
                                                    std::string_view shell);

}  // namespace gflow::cli
