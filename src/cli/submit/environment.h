// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/submit/values.h"

/// The environment a job is given: what the submitter had, once, at submission.
namespace gflow::cli {

using Environment = std::vector<std::string>;  ///< "NAME=value"

/// This process's.
[[nodiscard]] Environment own_environment();
/// What `wanted` leaves of it. Variables gflow gave a job this process is part of are always left
/// out: a job submitted by a job is not a task of its array.
[[nodiscard]] Environment exported(const Environment& all, const Export& wanted);
void set_variable(Environment& environment, std::string_view name, std::string_view value);
[[nodiscard]] std::string variable(const Environment& environment, std::string_view name);

/// Errors: Exhausted over 256 KiB, with the largest variables named.
[[nodiscard]] Result<void> check_size(const Environment& environment);

/// This process's as `conda activate NAME` would leave it; runs conda, whose complaints go to
/// stderr. Errors: NotFound.
[[nodiscard]] Result<Environment> conda_environment(const std::string& name);

}  // namespace gflow::cli
