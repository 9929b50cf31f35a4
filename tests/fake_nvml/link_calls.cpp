// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "world.h"

// PCIe paths and NVLinks of the machine's topology. A GPU numbers its links by their other end.
using namespace fake_nvml;  // NOLINT(google-build-using-namespace): the C interface is global
using gflow::Topology;

namespace {

constexpr std::uint32_t kMaxLinkNumbers = 36;
constexpr std::string_view kSwitchBusId = "00000000:C0:00.0";

/// Where a link of a GPU leads: to the GPU of an index, or to a switch.
struct Link {
  std::optional<int> gpu;
};

std::vector<Link> links_of(const SimDevice& device) {
  const Topology& topology = world().machine().topology;
  std::vector<Link> links;
  const int gpu = device.device.index;
  if (gpu >= topology.gpus) return links;
  for (int other = 0; other < topology.gpus; ++other) {
    links.insert(
        links.end(), static_cast<std::size_t>(topology.links_between(gpu, other)), Link{other});
  }
  if (topology.has_switch()) {
    const int count = topology.switch_links[static_cast<std::size_t>(gpu)];
    links.insert(links.end(), static_cast<std::size_t>(count), Link{});
  }
  return links;
}

/// A call about a link of a GPU.
struct LinkEntry {
  abi::Return code = abi::kSuccess;
  std::optional<Link> link;
};

LinkEntry enter_link(std::string_view call, abi::Handle handle, std::uint32_t number) {
  const Entry entry = enter(call, handle, "");
  if (entry.device == nullptr) return {entry.code, std::nullopt};
  const std::vector<Link> links = links_of(*entry.device);
  if (number >= kMaxLinkNumbers) return {abi::kInvalidArgument, std::nullopt};
  if (number >= links.size()) return {abi::kNotSupported, std::nullopt};
  return {abi::kSuccess, links[number]};
}

}  // namespace

extern "C" {

abi::Return nvmlDeviceGetTopologyCommonAncestor(abi::Handle handle, abi::Handle other, int* level) {
  const Entry one = enter(__func__, handle, "");
  if (one.device == nullptr) return one.code;
  const Entry two = enter(__func__, other, "");
  if (two.device == nullptr) return two.code;
  const Topology& topology = world().machine().topology;
  constexpr std::array kLevels = {abi::kTopologyInternal,
                                  abi::kTopologySingle,
                                  abi::kTopologyMultiple,
                                  abi::kTopologyHostBridge,
                                  abi::kTopologyNode,
                                  abi::kTopologySystem};
  *level = kLevels.at(static_cast<std::size_t>(
      topology.path_between(one.device->device.index, two.device->device.index)));
  return abi::kSuccess;
}

abi::Return nvmlDeviceGetNvLinkState(abi::Handle handle,
                                     std::uint32_t link,
                                     std::uint32_t* is_active) {
  const LinkEntry entry = enter_link(__func__, handle, link);
  *is_active = entry.link ? abi::kFeatureEnabled : 0;
  return entry.code;
}

abi::Return nvmlDeviceGetNvLinkRemotePciInfo_v2(abi::Handle handle,
                                                std::uint32_t link,
                                                abi::PciInfo* pci) {
  const LinkEntry entry = enter_link(__func__, handle, link);
  if (!entry.link) return entry.code;
  *pci = {};
  const std::string bus_id =
      entry.link->gpu
          ? bus_id_of(world().machine().devices[static_cast<std::size_t>(*entry.link->gpu)])
          : std::string(kSwitchBusId);
  std::memcpy(pci->bus_id, bus_id.c_str(), bus_id.size() + 1);
  return abi::kSuccess;
}

abi::Return nvmlDeviceGetNvLinkRemoteDeviceType(abi::Handle handle,
                                                std::uint32_t link,
                                                std::uint32_t* type) {
  const LinkEntry entry = enter_link(__func__, handle, link);
  if (!entry.link) return entry.code;
  *type = entry.link->gpu ? abi::kRemoteGpu : abi::kRemoteSwitch;
  return abi::kSuccess;
}

}  // extern "C"
