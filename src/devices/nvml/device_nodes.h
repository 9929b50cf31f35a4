// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "devices/nvml/report.h"

namespace gflow::devices::nvml {

/// /dev/nvidiaN of every GPU that there can be.
[[nodiscard]] DeviceNodes nvidia_gpus();

/// Fills in which device nodes the GPUs of a reading, and their MIG devices, are opened by:
/// /dev/nvidiaN, those of its display driver (/dev/dri, by the PCI address), and of instances of
/// MIG those in /dev/nvidia-caps, whose numbers the driver tells in
/// /proc/driver/nvidia-caps/mig-minors. What all programs need (nvidiactl, nvidia-uvm) is none of
/// them. `sysfs` and `procfs`: where these are mounted.
void add_device_nodes(const std::string& sysfs, const std::string& procfs, Report& report);

}  // namespace gflow::devices::nvml
