// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/memory.h"

namespace gflow::os {

/// Memory of this machine (MemTotal of /proc/meminfo), or of the container it is limited to.
[[nodiscard]] Memory host_memory();

}  // namespace gflow::os
