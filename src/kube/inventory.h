// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/memory.h"

/// The annotation gflow/devices of a node, docs/format/devices.md: which devices there are, written
/// by gflow-device-plugin, so that an index of gflow/allocation is always the same device.
namespace gflow::kube {

constexpr std::string_view kDevicesAnnotation = "gflow/devices";

struct ListedDevice {
  std::string resource;  ///< "nvidia.com/gpu"
  int index = 0;         ///< among those of the resource on the node
  std::string uuid;
  std::string model;    ///< as its driver reports it
  Memory memory{};      ///< all of it; 0: not known
  std::string trouble;  ///< why nothing new may start on it; "" if something may

  friend bool operator==(const ListedDevice&, const ListedDevice&) = default;
};

[[nodiscard]] std::string inventory_text(const std::vector<ListedDevice>& devices);
/// None of an annotation that is none, or has an index or a UUID twice.
[[nodiscard]] std::vector<ListedDevice> read_inventory(const std::string& text);

}  // namespace gflow::kube
