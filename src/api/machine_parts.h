// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types.h"
#include "base/result.h"

/// What of GET /api/v1/machine can be asked for on its own.
namespace gflow::api {

/// A node, and whether anything is started there.
struct NodeStateView {
  NodeView node;
  std::optional<UnhealthyNode> unhealthy;  ///< launches fail there
  /// It answers, stays, is not drained, and launches are not known to fail there.
  [[nodiscard]] bool ready() const {
    return node.unreachable.empty() && node.removed.empty() && !node.drained && !unhealthy;
  }
};
/// The answer to GET /api/v1/nodes, by name.
struct NodeList {
  std::vector<NodeStateView> nodes;
};
/// A device and where it is.
struct DeviceOnNodeView {
  std::string node;
  DeviceView device;
};
/// The answer to GET /api/v1/devices, by node and index.
struct DeviceList {
  std::vector<DeviceOnNodeView> devices;
};
/// How the devices of a node are connected: rows and columns in the order of `gpu_indices`.
struct NodeTopologyView {
  std::string node;
  std::vector<int> gpu_indices;
  TopologyView topology;
};
/// The answer to GET /api/v1/topology, by name.
struct TopologyList {
  std::vector<NodeTopologyView> nodes;
};

[[nodiscard]] std::string write(const NodeStateView& node);
[[nodiscard]] std::string write(const NodeList& nodes);
[[nodiscard]] std::string write(const DeviceOnNodeView& device);
[[nodiscard]] std::string write(const DeviceList& devices);
[[nodiscard]] std::string write(const TopologyList& topology);
[[nodiscard]] Result<NodeStateView> read_node(std::string_view json);
[[nodiscard]] Result<NodeList> read_nodes(std::string_view json);
[[nodiscard]] Result<DeviceList> read_devices(std::string_view json);
[[nodiscard]] Result<TopologyList> read_topology(std::string_view json);

}  // namespace gflow::api
