// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/event.h"
#include "kube/topology.h"

namespace gflow::kube {

/// What a ConfigMap says of how many GPUs the pods of a namespace hold at once, and of how the
/// network of the cluster is divided.
struct Limits {
  engine::GpuQuota quota;  ///< its users are namespaces
  Levels levels;
  bool are_levels_unread = false;     ///< LevelsRead::are_unread()
  std::vector<std::string> mistakes;  ///< sentences: what of it is not taken
};

/// What a scheduler of this schedulerName is called in its cluster, as its Lease is.
[[nodiscard]] std::string name_in_cluster(const std::string& scheduler);
/// What the ConfigMap of its limits is called.
[[nodiscard]] std::string limits_name_of(const std::string& scheduler);

/// Of its data: max_gpus_per_namespace, and max_gpus_of.NAMESPACE for single ones; topology_levels.
/// What cannot be read stays as it was before; where nothing was, there is no such limit.
[[nodiscard]] Limits limits_of(const nlohmann::json& config_map,
                               const engine::GpuQuota& before,
                               const Levels& levels_before = {});

/// For a log: "2 GPUs for each namespace, of vision 8"; "none".
[[nodiscard]] std::string to_text(const engine::GpuQuota& quota);

}  // namespace gflow::kube
