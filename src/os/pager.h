// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace gflow::os {

/// Gives the text to a pager, a line of the shell such as "less -FRX", and returns when the pager
/// has ended. It need not read everything, and Ctrl-C is its business meanwhile.
/// Errors: NotFound if there is no such program; what the system said.
[[nodiscard]] Result<void> show_in_pager(const std::string& command, std::string_view text);

}  // namespace gflow::os
