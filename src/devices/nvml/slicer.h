// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "devices/slicer.h"

namespace gflow::devices::nvml {

/// Has gflow-mig ask NVIDIA's driver, one at a time.
[[nodiscard]] Result<std::unique_ptr<Slicer>> open_slicer(const SlicerOptions& options);

}  // namespace gflow::devices::nvml
