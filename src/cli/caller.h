// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "command/context.h"

namespace gflow::cli {

/// Who the caller is where the daemon runs: the account here, or, on another machine, whom its
/// gflowd takes the token for; in a cluster the namespace of the context.
[[nodiscard]] Result<std::string> caller_name(Context& context);
/// The same for what is only shown as one's own: the account here, where it cannot be asked.
[[nodiscard]] std::string viewer_name(Context& context);

}  // namespace gflow::cli
