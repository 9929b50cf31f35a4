// SPDX-License-Identifier: Apache-2.0
#include "devices/sim/links.h"
#include "base/at.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gflow::devices::sim {
namespace {

using Mesh = std::array<std::array<int, 8>, 8>;

// NVIDIA go-gpuallocator's fixture of a DGX-1 with V100 (Apache-2.0).
constexpr Mesh kDgx1 = {{{0, 1, 1, 2, 2, 0, 0, 0},
                         {1, 0, 2, 1, 0, 2, 0, 0},
                         {1, 2, 0, 2, 0, 0, 1, 0},
                         {2, 1, 2, 0, 0, 0, 0, 1},
                         {2, 0, 0, 0, 0, 1, 1, 2},
                         {0, 2, 0, 0, 1, 0, 2, 1},
                         {0, 0, 1, 0, 1, 2, 0, 2},
                         {0, 0, 0, 1, 2, 1, 2, 0}}};
// RCCL's topo_8p1h.xml: four MI250X, two GCDs each.
constexpr Mesh kMi250 = {{{0, 4, 0, 0, 2, 0, 1, 0},
                          {4, 0, 0, 1, 0, 0, 0, 1},
                          {0, 0, 0, 4, 1, 0, 2, 0},
                          {0, 1, 4, 0, 0, 1, 0, 0},
                          {2, 0, 1, 0, 0, 4, 0, 0},
                          {0, 0, 0, 1, 4, 0, 0, 1},
                          {1, 0, 2, 0, 0, 0, 0, 4},
                          {0, 1, 0, 0, 0, 1, 4, 0}}};
constexpr Mesh kAllToAll = {{{0, 1, 1, 1, 1, 1, 1, 1},
                             {1, 0, 1, 1, 1, 1, 1, 1},
                             {1, 1, 0, 1, 1, 1, 1, 1},
                             {1, 1, 1, 0, 1, 1, 1, 1},
                             {1, 1, 1, 1, 0, 1, 1, 1},
                             {1, 1, 1, 1, 1, 0, 1, 1},
                             {1, 1, 1, 1, 1, 1, 0, 1},
                             {1, 1, 1, 1, 1, 1, 1, 0}}};

/// How many GPUs of a model are connected otherwise than by PCIe.
struct Fabric {
  std::string_view model;  ///< as the driver reports it
  int most = 8;            ///< GPUs
  const Mesh* mesh = nullptr;
  int switch_links = 0;
};
constexpr std::array kFabrics = std::to_array<Fabric>({
    {"NVIDIA H100 80GB HBM3", 8, nullptr, 18},
    {"NVIDIA H200", 8, nullptr, 18},
    {"NVIDIA H20", 8, nullptr, 18},
    {"NVIDIA H800", 8, nullptr, 8},
    {"NVIDIA B200", 8, nullptr, 18},
    {"NVIDIA A100-SXM4-80GB", 16, nullptr, 12},
    {"NVIDIA A100-SXM4-40GB", 16, nullptr, 12},
    {"NVIDIA A800-SXM4-80GB", 8, nullptr, 8},
    {"Tesla V100-SXM2-32GB", 8, &kDgx1, 0},
    {"Tesla V100-SXM2-16GB", 8, &kDgx1, 0},
    {"Tesla V100-SXM2-32GB", 16, nullptr, 6},
    {"AMD Instinct MI300X", 8, &kAllToAll, 0},
    {"AMD Instinct MI250X", 8, &kMi250, 0},
});

/// That of the machine; null for PCIe alone.
const Fabric* fabric_of(const std::vector<SimDevice>& devices) {
  const std::string& model = devices.front().device.model;
  const auto other = [&](const SimDevice& one) { return one.device.model != model; };
  if (devices.size() < 2 || std::ranges::any_of(devices, other)) return nullptr;
  const auto found = std::ranges::find_if(kFabrics, [&](const Fabric& fabric) {
    return fabric.model == model && devices.size() <= at(fabric.most);
  });
  return found == kFabrics.end() ? nullptr : &*found;
}

/// Of models mixed the slowest, part by part.
LinkSpeeds speeds_of(const std::vector<SimDevice>& devices) {
  LinkSpeeds speeds = speeds_of_model(devices.front().device.model);
  for (const SimDevice& one : devices) {
    const LinkSpeeds other = speeds_of_model(one.device.model);
    speeds.link = std::min(speeds.link, other.link);
    for (std::size_t path = 0; path < kPathClasses; ++path) {
      speeds.path.at(path) = std::min(speeds.path.at(path), other.path.at(path));
    }
  }
  return speeds;
}

}  // namespace

Topology links_of(const std::vector<SimDevice>& devices) {
  const int gpus = static_cast<int>(devices.size());
  if (gpus == 0) return {};
  Topology topology = plain_topology(gpus, PathClass::Sys);
  topology.speeds = speeds_of(devices);
  const Fabric* fabric = fabric_of(devices);
  const PathClass near = fabric == nullptr ? PathClass::Phb : PathClass::Node;
  if (devices.front().device.vendor == "amd") topology.link_name = "XGMI";
  for (int a = 0; a < gpus; ++a) {
    topology.numa[at(a)] = devices[at(a)].device.numa_node;
    for (int b = 0; b < gpus; ++b) {
      const std::size_t pair = at(a * gpus + b);
      const bool same_node = devices[at(a)].device.numa_node == devices[at(b)].device.numa_node;
      if (a != b && same_node) topology.paths[pair] = near;
      if (a != b && fabric != nullptr && fabric->mesh != nullptr) {
        topology.links[pair] = fabric->mesh->at(at(a)).at(at(b));
      }
    }
  }
  if (fabric != nullptr && fabric->switch_links > 0) {
    topology.switch_links.assign(at(gpus), fabric->switch_links);
  }
  return topology;
}

Result<Topology> links_from(const std::string& matrix, std::vector<SimDevice>& devices) {
  if (devices.empty()) return fail(Code::Usage, "a machine without GPUs has no matrix");
  Topology topology = GF_TRY(parse_topology(matrix, speeds_of(devices)));
  if (at(topology.gpus) != devices.size()) {
    return fail(
        Code::Usage,
        fmt::format("the matrix has {} GPUs, the machine {}", topology.gpus, devices.size()));
  }
  for (std::size_t gpu = 0; gpu < devices.size(); ++gpu) {
    std::optional<int>& node = devices[gpu].device.numa_node;
    if (topology.numa[gpu]) node = topology.numa[gpu];
    topology.numa[gpu] = node;
  }
  return topology;
}

}  // namespace gflow::devices::sim
