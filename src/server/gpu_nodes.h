// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/gpu_resources.h"
#include "api/types.h"
#include "server/service.h"

/// What the documents of /api/v1/gpu say of nodes and their devices.
namespace gflow::server {

/// By this machine's clock, "2024-01-01T12:00:00".
[[nodiscard]] std::string timestamp_of(WallTime time);
[[nodiscard]] double gb_of(Memory memory);
/// "V100", without the size that the memory tells.
[[nodiscard]] std::string gpu_type_of(const api::DeviceView& device);

/// Why nothing can be said of the devices: no node has told of any yet, or none of them answers;
/// empty if something can.
[[nodiscard]] std::optional<Error> check_devices_known(const std::vector<api::NodeView>& nodes);

[[nodiscard]] api::GpuUtilization utilization_of(const std::vector<api::NodeView>& nodes);
/// An entry for each model on each node, also of those with nothing free.
[[nodiscard]] std::vector<api::GpuNode> gpu_nodes_of(const std::vector<api::NodeView>& nodes);
[[nodiscard]] std::vector<api::MonitoredNode> monitored(const std::vector<api::NodeView>& nodes);
/// Without the time. `unhealthy`: where launches fail.
[[nodiscard]] api::GpuHealth health_of(const std::vector<api::NodeView>& nodes,
                                       const std::vector<api::UnhealthyNode>& unhealthy);

}  // namespace gflow::server
