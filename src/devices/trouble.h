// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/machine.h"

namespace gflow::devices {

constexpr const char* kLostTrouble = "the driver lost this GPU (it may have fallen off the bus)";
constexpr const char* kGoneTrouble =
    "this GPU is not in the machine any more, and a job holds it until it ends";
constexpr const char* kSliceGoneTrouble =
    "this MIG device is not there any more, and a job holds it until it ends";
constexpr const char* kMigTrouble =
    "MIG is enabled and there is no MIG device: create some (nvidia-smi mig -cgi PROFILES -C), or "
    "turn it off (nvidia-smi -mig 0)";
constexpr const char* kSliceLostTrouble = "the driver lost the GPU of this MIG device";

/// Keeps what a device is (model, UUID, address, NUMA node, size of its memory) and takes away what
/// was measured, so that nothing old or zero stands where nothing is known.
void without_readings(Device& device);

}  // namespace gflow::devices
