// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/memory.h"

namespace gflow::os {

/// Memory of this machine (MemTotal of /proc/meminfo), or of the container it is limited to.
[[nodiscard]] Memory host_memory();
/// What of it programs could have without swapping (MemAvailable); 0 where that is not told.
[[nodiscard]] Memory available_memory();
/// How many descriptors this process can have open once the limit is raised.
[[nodiscard]] std::uint64_t most_open_files();
/// How many it may have open as things are.
[[nodiscard]] std::uint64_t open_file_limit();
/// Raises how many files this process may have open to the most it may ask for; what it was before.
std::uint64_t raise_open_files();

}  // namespace gflow::os
