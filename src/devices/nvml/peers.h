// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cuda/nvml_abi.h"
#include "devices/nvml/library.h"
#include "devices/nvml/report.h"

namespace gflow::devices::nvml {

struct OpenDevice {
  abi::Handle handle = nullptr;
  std::string pci_address;
};

/// How one GPU is connected to the others.
struct Connections {
  std::vector<PeerReport> peers;
  int switch_links = 0;
};

/// For each of the GPUs: the PCIe path to every other and the NVLinks that are up. A driver that
/// has none of these calls gives no peers, one GPU that fails gives none of its own.
[[nodiscard]] std::vector<Connections> read_connections(const Library& library,
                                                        const std::vector<OpenDevice>& devices);

}  // namespace gflow::devices::nvml
