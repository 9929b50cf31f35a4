// SPDX-License-Identifier: Apache-2.0
#include "devices/nvml/peers.h"

#include <algorithm>

#include "devices/pci_address.h"

namespace gflow::devices::nvml {
namespace {

constexpr std::uint32_t kMaxLinkNumbers = 36;  // NVML_NVLINK_MAX_LINKS of today's header

std::optional<PathClass> path_of(int level) {
  switch (level) {
    case abi::kTopologyInternal:  // two GPUs on one board, behind one bridge
    case abi::kTopologySingle:
      return PathClass::Pix;
    case abi::kTopologyMultiple:
      return PathClass::Pxb;
    case abi::kTopologyHostBridge:
      return PathClass::Phb;
    case abi::kTopologyNode:
      return PathClass::Node;
    case abi::kTopologySystem:
      return PathClass::Sys;
    default:
      return std::nullopt;
  }
}

/// Where a link leads.
struct LinkEnd {
  std::optional<bool> to_switch;  ///< empty: a driver too old to tell
  std::string pci_address;
};

/// The end of a link that is up; empty for one that is down, absent or leads to neither a GPU nor a
/// switch (POWER9 processors have NVLinks too).
std::optional<LinkEnd> link_end(const Library& library, abi::Handle device, std::uint32_t link) {
  std::uint32_t state = 0;
  if (library.call<abi::GetLinkNumber>("nvmlDeviceGetNvLinkState", device, link, &state) !=
          abi::kSuccess ||
      state != abi::kFeatureEnabled) {
    return std::nullopt;
  }
  std::uint32_t type = abi::kRemoteUnknown;
  const abi::Return typed =
      library.call<abi::GetLinkNumber>("nvmlDeviceGetNvLinkRemoteDeviceType", device, link, &type);
  if (typed == abi::kSuccess && type == abi::kRemoteSwitch) return LinkEnd{true, ""};
  if (typed == abi::kSuccess && type != abi::kRemoteGpu) return std::nullopt;
  abi::PciInfo pci{};
  if (library.call<abi::GetLinkPci>("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, link, &pci) !=
      abi::kSuccess) {
    return std::nullopt;
  }
  std::ranges::end(pci.bus_id)[-1] = '\0';
  const std::string address = normal_pci_address(pci.bus_id).value_or("");
  return LinkEnd{typed == abi::kSuccess ? std::optional(false) : std::nullopt, address};
}

void add_links(const Library& library, abi::Handle device, Connections& connections) {
  for (std::uint32_t link = 0; link < kMaxLinkNumbers; ++link) {
    const auto end = link_end(library, device, link);
    if (!end) continue;
    const auto peer =
        std::ranges::find(connections.peers, end->pci_address, &PeerReport::pci_address);
    const bool to_peer = peer != connections.peers.end();
    if (end->to_switch.value_or(!to_peer)) {
      ++connections.switch_links;
    } else if (to_peer) {
      ++peer->links;
    }
  }
}

}  // namespace

std::vector<Connections> read_connections(const Library& library,
                                          const std::vector<OpenDevice>& devices) {
  std::vector<Connections> all;
  for (const OpenDevice& one : devices) {
    Connections& connections = all.emplace_back();
    for (const OpenDevice& other : devices) {
      if (one.handle == other.handle) continue;
      int level = 0;
      const abi::Return code = library.call<abi::GetTopology>(
          "nvmlDeviceGetTopologyCommonAncestor", one.handle, other.handle, &level);
      const auto path = code == abi::kSuccess ? path_of(level) : std::nullopt;
      if (path) connections.peers.push_back({other.pci_address, *path, 0});
    }
    if (!connections.peers.empty()) add_links(library, one.handle, connections);
  }
  return all;
}

}  // namespace gflow::devices::nvml
