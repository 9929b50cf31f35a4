// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/json_reader.h"
#include "api/json_writer.h"
#include "api/topology_view.h"

/// Field lists of how GPUs are connected.
namespace gflow::api {

template <>
inline constexpr std::string_view kSchemaName<PathSpeeds> = "PathSpeeds";
template <class Io, Like<PathSpeeds> T>
void fields(Io& io, T& speeds) {
  io.field("PIX", speeds.pix);
  io.field("PXB", speeds.pxb);
  io.field("PHB", speeds.phb);
  io.field("NODE", speeds.node);
  io.field("SYS", speeds.sys);
}

template <>
inline constexpr std::string_view kSchemaName<NumaCpus> = "NumaCpus";
template <class Io, Like<NumaCpus> T>
void fields(Io& io, T& numa) {
  io.required("node", numa.node);
  io.field("cpus", numa.cpus);
}

template <>
inline constexpr std::string_view kSchemaName<TopologyView> = "TopologyView";
template <class Io, Like<TopologyView> T>
void fields(Io& io, T& topology) {
  io.field("gpus", topology.gpus);
  io.field("link_name", topology.link_name);
  io.field("links", topology.links);
  io.field("switch_links", topology.switch_links);
  io.field("paths", topology.paths);
  io.field("link_mb_per_second", topology.link_mb_per_second);
  io.field("path_mb_per_second", topology.path_mb_per_second);
  io.field("numa_nodes", topology.numa_nodes);
  io.field("numa_cpus", topology.numa_cpus);
}

}  // namespace gflow::api
