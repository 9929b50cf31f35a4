// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/machine.h"

/// What a node tells its cluster of its GPUs: ResourceSlices (resource.k8s.io/v1).
namespace gflow::dra {

constexpr std::string_view kDriver = "gpu.gflow";
/// Capacities of a device, of which a claim may ask for a part. One that is not asked for is all.
constexpr const char* kMemory = "memory";  ///< bytes
constexpr const char* kShare = "share";    ///< of its time: 1 is all

/// What a device is called in slices and claims: of its UUID, so that a claim that outlives a boot
/// is of the device it was given. "" of one that has none, and of a slice of MIG: those are left to
/// NVIDIA's driver, as who asks for a GPU here means a whole one.
[[nodiscard]] std::string device_name(const Device& device);

/// `devices` of slices, all of the machine that have a name. `can_share`: containers are held to
/// parts of them; where they are not, nothing is given out in parts.
[[nodiscard]] nlohmann::json slice_devices(const Machine& machine, bool can_share);

struct NodeName {
  std::string name;
  std::string uid;  ///< of the Node, with which the slices go
};

/// The slices of a node, with none where there are no devices. `generation` has to be another one
/// whenever anything in them is.
[[nodiscard]] std::vector<nlohmann::json> make_slices(const nlohmann::json& devices,
                                                      const NodeName& node,
                                                      std::int64_t generation);

}  // namespace gflow::dra
