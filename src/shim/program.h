// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "attempt/order.h"
#include "shim/payload.h"

namespace gflow::shim {

/// Replaces this process by the job's program or script. Returns only if that cannot be done.
[[nodiscard]] LaunchFailure run_program(const attempt::Order& order);

}  // namespace gflow::shim
