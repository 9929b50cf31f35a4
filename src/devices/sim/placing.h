// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "devices/sim/catalogue.h"
#include "devices/sim/machine_file.h"

namespace gflow::devices::sim {

/// An idle device of a model, without index, address and UUID.
[[nodiscard]] SimDevice idle_device(const Model& model);

/// "PREFIX-..." of whatever names a device: always the same.
[[nodiscard]] std::string made_up_uuid(std::string_view prefix, std::string_view of);

/// Gives every device the address, NUMA node, index and UUID it was not given, always the same ones
/// for the same devices, and puts them in PCI order. Devices of four or more spread over two NUMA
/// nodes. Errors: Code::Usage for an address or UUID that two devices have.
[[nodiscard]] Result<std::vector<SimDevice>> placed(std::vector<SimDevice> devices);

}  // namespace gflow::devices::sim
