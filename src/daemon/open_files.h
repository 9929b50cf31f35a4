// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

namespace gflow::daemon {

/// Whether a daemon can start with as many descriptors as this process may have. With too few it
/// would end somewhere on the way, or start and answer nobody. Errors: Failure saying how many.
[[nodiscard]] Result<void> check_open_files();

}  // namespace gflow::daemon
