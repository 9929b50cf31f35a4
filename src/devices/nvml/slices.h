// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "cuda/nvml_abi.h"
#include "devices/nvml/library.h"
#include "devices/nvml/process_list.h"
#include "devices/nvml/report.h"

namespace gflow::devices::nvml {

/// Reads the MIG devices that a GPU with MIG enabled has now into its report, by their instances.
/// Handles of theirs go stale when instances are created or destroyed, so they are looked up anew
/// at each reading; one that goes meanwhile is left out.
void read_slices(const Library& library, ProcessList& list, abi::Handle gpu, DeviceReport& report);

}  // namespace gflow::devices::nvml
