// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace gflow::config {

/// What is wrong in a line of a configuration file, and what to do about it.
struct Problem {
  std::string file;
  int line = 0;  ///< from 1
  std::string message;

  friend bool operator==(const Problem&, const Problem&) = default;
};
[[nodiscard]] std::string problem_text(const Problem& problem);  ///< "FILE:LINE: ..."

/// What there is to say of a file.
struct Checked {
  std::vector<Problem> problems;   ///< in the order of their lines
  std::vector<std::string> notes;  ///< what is no error: sentences
};

}  // namespace gflow::config
