// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/device_filter.h"

namespace gflow::shim {

/// Keeps this process, and all it starts, from opening the device nodes of the filter, for good:
/// landlock(7), which needs no root. It also keeps them from what set-user-id programs gain, and
/// from mounting. False with errno: nothing was changed, or not all of it.
[[nodiscard]] bool keep_from_devices(const DeviceFilter& filter);

}  // namespace gflow::shim
