// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cuda/nvml_abi.h"
#include "devices/nvml/library.h"
#include "devices/nvml/report.h"

namespace gflow::devices::nvml {

/// A profile of GPU instances, by what the driver calls it.
struct InstanceProfile {
  abi::GpuInstanceProfile facts{};
  MigKind kind;
};
/// All that the GPU has, without those whose name is not understood. Errors: the driver's, among
/// them that only root is told.
[[nodiscard]] Result<std::vector<InstanceProfile>> instance_profiles(const Library& library,
                                                                     abi::Handle gpu);

/// A GPU instance there is.
struct OpenInstance {
  abi::Handle handle = nullptr;
  MigInstance facts;
};
[[nodiscard]] Result<std::vector<OpenInstance>> instances_of(const Library& library,
                                                             abi::Handle gpu,
                                                             const InstanceProfile& profile);

/// Reads into the report what a GPU with MIG enabled can be cut into, and what of it is.
void read_room(const Library& library, abi::Handle gpu, DeviceReport& report);

}  // namespace gflow::devices::nvml
