// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "command/command.h"
#include "command/context.h"
#include "core/job_id.h"

namespace gflow::cli {

/// Prints every job that was named, as `shown` has it: a JSON document and its line, or a text, an
/// empty line between two of those. One that is not there is said and does not keep the others from
/// being printed. The worst exit code of them all.
[[nodiscard]] Result<int> print_jobs(const Invocation& invocation,
                                     Context& context,
                                     const std::function<Result<std::string>(JobId)>& shown);

}  // namespace gflow::cli
