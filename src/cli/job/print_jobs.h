// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "api/types.h"
#include "command/command.h"
#include "command/context.h"

namespace gflow::cli {

/// Prints every job that was named: as JSON if that is wanted, else as `text` has it, an empty line
/// between two. One that is not there is said and does not keep the others from being printed.
/// The worst exit code of them all.
[[nodiscard]] Result<int> print_jobs(const Invocation& invocation,
                                     Context& context,
                                     const std::function<std::string(const api::JobView&)>& text);

}  // namespace gflow::cli
