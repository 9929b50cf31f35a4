// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gflow::slurm {

/// A program of Slurm that is run, found by PATH.
struct Call {
  std::vector<std::string> argv;
  std::string input = {};
  /// "NAME=value": all it has, but for where Slurm's configuration is. Empty: this process's.
  std::vector<std::string> environment = {};
  int lock = -1;  ///< a descriptor that it keeps open to its end
};

struct Ran {
  int exit_code = 0;
  std::string out;
  std::string err;
};

/// Runs it to its end, with the rights of who runs this. What asks tells times in UTC, whatever the
/// user's settings of its output are. Errors: NotFound where Slurm is not installed; Timeout;
/// Exhausted if it writes more than can be meant.
[[nodiscard]] Result<Ran> run(const Call& call);

/// The same for one that has to succeed. Errors, in its own words: Infeasible; Unreachable where
/// the controller does not answer; Permission; NotFound of a job that is not there.
[[nodiscard]] Result<std::string> output_of(const Call& call);

/// In Slurm's own words, without its name before them.
[[nodiscard]] Error error_of(const Ran& ran, std::string_view program);

}  // namespace gflow::slurm
