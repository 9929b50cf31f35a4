// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gflow::devices {

/// A PCI address as Linux writes it, "0000:3b:00.0": from that, from NVML's "00000000:3B:00.0" or
/// from a short "3b:00.0". Empty if the text is none of them.
[[nodiscard]] std::optional<std::string> normal_pci_address(std::string_view text);

/// Order of PCI addresses: by domain, bus, device, function. Texts that are none come last.
[[nodiscard]] bool pci_before(std::string_view a, std::string_view b);

}  // namespace gflow::devices
