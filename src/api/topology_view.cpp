// SPDX-License-Identifier: Apache-2.0
#include "api/topology_view.h"

#include <algorithm>

namespace gflow::api {
namespace {

template <typename T>
std::vector<std::vector<T>> rows_of(const std::vector<T>& values, int width) {
  std::vector<std::vector<T>> rows;
  for (auto at = values.begin(); at != values.end(); at += width) rows.emplace_back(at, at + width);
  return rows;
}

/// The values row by row; empty, which check() refuses, if a row has another width.
template <typename T>
std::vector<T> values_of(const std::vector<std::vector<T>>& rows) {
  std::vector<T> values;
  for (const std::vector<T>& row : rows) {
    if (row.size() != rows.size()) return {};
    values.insert(values.end(), row.begin(), row.end());
  }
  return values;
}

}  // namespace

TopologyView view_of(const Topology& topology) {
  const auto& path = topology.speeds.path;
  const auto speed = [&](PathClass of) { return path.at(static_cast<std::size_t>(of)); };
  return {.gpus = topology.gpus,
          .link_name = topology.link_name,
          .links = rows_of(topology.links, topology.gpus),
          .switch_links = topology.switch_links,
          .paths = rows_of(topology.paths, topology.gpus),
          .link_mb_per_second = topology.speeds.link,
          .path_mb_per_second = {.pix = speed(PathClass::Pix),
                                 .pxb = speed(PathClass::Pxb),
                                 .phb = speed(PathClass::Phb),
                                 .node = speed(PathClass::Node),
                                 .sys = speed(PathClass::Sys)},
          .numa_nodes = topology.numa,
          .numa_cpus = topology.cpus};
}

Result<Topology> topology_of(const TopologyView& view) {
  const PathSpeeds& path = view.path_mb_per_second;
  Topology topology;
  topology.gpus = view.gpus;
  topology.link_name = view.link_name;
  topology.links = values_of(view.links);
  topology.switch_links = view.switch_links;
  topology.paths = values_of(view.paths);
  topology.speeds = {.link = view.link_mb_per_second,
                     .path = {0, path.pix, path.pxb, path.phb, path.node, path.sys}};
  topology.numa = view.numa_nodes;
  topology.cpus = view.numa_cpus;
  GF_CHECK(check(topology));
  return topology;
}

}  // namespace gflow::api
