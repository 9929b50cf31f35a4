// SPDX-License-Identifier: Apache-2.0
#include "devices/nvml/host_facts.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/text.h"
#include "os/file.h"
#include "os/user.h"

namespace gflow::devices::nvml {
namespace {

constexpr const char* kNvidiaVendor = "0x10de";
constexpr const char* kDisplayClass = "0x03";  // VGA and 3D controllers (PCI class code 03)

std::string first_line(const std::string& path) {
  const auto text = os::read_file(path, Memory::mib(1));
  return text ? std::string(trim(*text)) : "";
}

}  // namespace

std::string process_name(int pid) {
  // Not cmdline: that is read from the memory of the process, which can keep its reader waiting.
  return printable(first_line(fmt::format("/proc/{}/comm", pid)));
}

std::string process_user(int pid) {
  struct stat facts{};
  if (::stat(fmt::format("/proc/{}", pid).c_str(), &facts) != 0) return {};
  return printable(os::account_of(facts.st_uid).name);
}

std::optional<int> numa_node(const std::string& sysfs, const std::string& pci_address) {
  const std::string path = fmt::format("{}/bus/pci/devices/{}/numa_node", sysfs, pci_address);
  const auto node = parse_number(first_line(path));
  if (!node || *node > 1'000'000) return std::nullopt;
  return static_cast<int>(*node);
}

std::string cpus_of_node(const std::string& sysfs, int node) {
  const std::string cpus =
      first_line(fmt::format("{}/devices/system/node/node{}/cpulist", sysfs, node));
  return cpus.find_first_not_of("0123456789,-") == std::string::npos ? cpus : "";
}

int count_nvidia_on_pci(const std::string& sysfs) {
  int count = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(sysfs + "/bus/pci/devices", error)) {
    const std::string device = entry.path().string();
    const bool nvidia = first_line(device + "/vendor") == kNvidiaVendor;
    if (nvidia && first_line(device + "/class").starts_with(kDisplayClass)) ++count;
  }
  return count;
}

}  // namespace gflow::devices::nvml
