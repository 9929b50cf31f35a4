// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"
#include "core/machine.h"
#include "kube/objects.h"

/// Between Kubernetes' words and those of the engine, both ways.
namespace gflow::kube {

/// A resource that is whole GPUs.
struct GpuResource {
  std::string_view name;
  std::string_view vendor;
};
/// In the order in which a node with several counts its devices.
inline constexpr std::array<GpuResource, 6> kGpuResources = {{{"nvidia.com/gpu", "nvidia"},
                                                              {"amd.com/gpu", "amd"},
                                                              {"gpu.intel.com/i915", "intel"},
                                                              {"gpu.intel.com/xe", "intel"},
                                                              {"intel.com/gpu", "intel"},
                                                              {"huawei.com/npu", "ascend"}}};

/// Of which a container asks for one to be given all that gflow/allocation names; what offers it is
/// gflow-device-plugin.
constexpr std::string_view kAllocationResource = "gflow/allocation";

/// What a pod asks the engine for. CPUs are counted in thousandths there: its unit of a CPU is
/// whatever machines and jobs agree on. Errors: Usage, for a request that makes no sense, as the
/// pod is to be told.
[[nodiscard]] Result<gflow::Request> request_of(const Pod& pod);
/// 0..255 of a priority of Kubernetes: higher stays higher, and what differs by an eighth or more
/// differs still. 0 is the usual one.
[[nodiscard]] int priority_of(int priority);

/// What of a pod the engine does not count and a node must have left: all but CPUs, memory, GPUs.
[[nodiscard]] Amounts extras_of(const Pod& pod);

/// The GPUs of a node, by index: those of its inventory, of which no more may be given out than its
/// kubelet offers; without one as many as it offers, of the model that the labels say (gpu-type,
/// nvidia.com/gpu.product, ...), with the memory of nvidia.com/gpu.memory, else that of the model.
[[nodiscard]] std::vector<Device> devices_of(const Node& node);

/// One device of gflow/allocation.
struct Chosen {
  std::string resource;  ///< "nvidia.com/gpu"
  int index = 0;         ///< among those of the resource on the node
  Share share = Share::whole();
  Memory memory{};  ///< set aside on it; 0: none

  friend bool operator==(const Chosen&, const Chosen&) = default;
};
/// docs/format/allocation.md
struct ChosenDevices {
  std::string node;
  std::vector<Chosen> devices;

  friend bool operator==(const ChosenDevices&, const ChosenDevices&) = default;
};
[[nodiscard]] std::string text_of(const ChosenDevices& chosen);
/// An empty optional for what is none.
[[nodiscard]] std::optional<ChosenDevices> read_chosen(const std::string& text);

/// The name and number of a device by its index on the node, and back; a device is known by both.
[[nodiscard]] Chosen name_device(const std::vector<Device>& devices, int index);
[[nodiscard]] std::optional<int> index_of(const std::vector<Device>& devices, const Chosen& chosen);

/// The indices of the devices that gflow/allocation names on this node, ascending; nothing where it
/// is none of that node, or not what was asked for. Whoever may write annotations may have changed
/// what a pod asks for since.
[[nodiscard]] std::optional<std::vector<int>> devices_named(const std::string& allocation,
                                                            const std::string& node,
                                                            const std::vector<Device>& devices,
                                                            const gflow::Request& request);

}  // namespace gflow::kube
