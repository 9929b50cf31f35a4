// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "devices/sim/machine_file.h"
#include "devices/sim/yaml.h"

/// MIG devices of simulated GPUs.
namespace gflow::devices::sim {

/// The list "mig" of a GPU: profiles, or maps with one. Numbers of instances and memory that it
/// does not say are as a driver would have them. Errors: Code::Usage, for what no GPU can be cut
/// into, too.
[[nodiscard]] Result<std::vector<SimSlice>> read_slices(const Fields& gpu, const SimDevice& made);

/// Gives the slices their parent and the UUIDs that they were not given, always the same ones for
/// the same slices of the same GPU. REQUIRES: `device` has its UUID.
void name_slices(SimDevice& device);

/// Fills what a driver tells of a GPU with MIG enabled: what it can be cut into, and where its
/// slices are. REQUIRES: name_slices().
void place_slices(SimDevice& device);

/// As its driver calls a slice: "NVIDIA H100 80GB HBM3 MIG 1g.10gb".
[[nodiscard]] std::string slice_model(const Device& gpu, const SimSlice& slice);

}  // namespace gflow::devices::sim
