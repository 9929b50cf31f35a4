// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace gflow::devices::nvml {

/// Name of a process for people: the last component of its argv[0], else what the kernel calls it;
/// "" if it cannot be seen from here (it ended, or lives in another pid namespace).
[[nodiscard]] std::string process_name(int pid);
/// Name of the user a process runs as; "" if it cannot be seen from here.
[[nodiscard]] std::string process_user(int pid);
/// The NUMA node of a PCI device by sysfs; empty where the kernel says -1 or nothing.
[[nodiscard]] std::optional<int> numa_node(const std::string& sysfs,
                                           const std::string& pci_address);
/// The CPUs of a NUMA node as the kernel writes them, "0-23,48-71"; "" if it does not tell.
[[nodiscard]] std::string cpus_of_node(const std::string& sysfs, int node);
/// How many NVIDIA display controllers there are on the PCI bus, with a driver or without.
[[nodiscard]] int count_nvidia_on_pci(const std::string& sysfs);

}  // namespace gflow::devices::nvml
