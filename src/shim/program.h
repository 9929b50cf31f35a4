// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "attempt/order.h"
#include "shim/payload.h"

namespace gflow::shim {

/// Replaces this process by the job's program or script, once it has noted its pid in `record`, the
/// file with the exit record. Returns only if that cannot be done.
[[nodiscard]] LaunchFailure run_program(const attempt::Order& order, int record);

}  // namespace gflow::shim
