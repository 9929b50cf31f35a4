// SPDX-License-Identifier: Apache-2.0
#include "devices/nvml/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "devices/nvml/device_nodes.h"
#include "devices/nvml/device_reader.h"
#include "devices/nvml/host_facts.h"
#include "devices/nvml/mig_room.h"
#include "devices/nvml/processes.h"
#include "devices/nvml/slices.h"
#include "devices/pci_address.h"

namespace gflow::devices::nvml {
namespace {

constexpr std::uint32_t kMaxGpus = 1024;

/// The library as a whole does not work; what helps is to initialise it again.
bool concerns_library(abi::Return code) {
  return code == abi::kUninitialized || code == abi::kDriverNotLoaded ||
         code == abi::kLibraryNotFound || code == abi::kVersionMismatch;
}

std::string library_error(abi::Return code, const std::string& text) {
  switch (code) {
    case abi::kDriverNotLoaded:
      return "the NVIDIA kernel driver is not loaded";
    case abi::kVersionMismatch:
      return "the NVIDIA library is of another version than the loaded kernel driver: reload the "
             "driver or reboot";
    case abi::kNoPermission:
      return "no permission to use the NVIDIA driver";
    default:
      return fmt::format("the NVIDIA driver does not work: {}", text);
  }
}

}  // namespace

Report Sampler::failed(abi::Return code) {
  if (ready_ && concerns_library(code)) {
    (void)library_.call<abi::Init>("nvmlShutdown");  // it does not work anyway
    ready_ = false;
  }
  Report report;
  report.error = library_error(code, library_.error_text(code));
  return report;
}

Report Sampler::read() {
  if (!ready_) {
    const abi::Return code = library_.call<abi::Init>("nvmlInit_v2");
    if (code != abi::kSuccess) return failed(code);
    ready_ = true;
  }
  std::uint32_t count = 0;
  const abi::Return counted = library_.call<abi::GetCount>("nvmlDeviceGetCount_v2", &count);
  if (counted != abi::kSuccess) return failed(counted);

  Report report;
  std::array<char, abi::kVersionSize> driver{};
  (void)library_.call<abi::SystemText>(
      "nvmlSystemGetDriverVersion", driver.data(), static_cast<std::uint32_t>(driver.size() - 1));
  report.driver = printable(driver.data());
  std::vector<abi::Handle> handles;
  for (std::uint32_t at = 0; at < std::min(count, kMaxGpus); ++at) {
    abi::Handle device = nullptr;
    const abi::Return code =
        library_.call<abi::GetHandle>("nvmlDeviceGetHandleByIndex_v2", at, &device);
    if (concerns_library(code)) return failed(code);
    if (code == abi::kSuccess) {
      report.devices.push_back(read_device(device));
      handles.push_back(device);
    }
    if (code != abi::kSuccess) report.unreachable.push_back(library_.error_text(code));
  }
  add_connections(handles, report);
  std::ranges::sort(report.devices, pci_before, &DeviceReport::pci_address);
  add_device_nodes(sysfs_, "/proc", report);
  return report;
}

/// REQUIRES: the handles are those of report.devices.
void Sampler::add_connections(const std::vector<abi::Handle>& handles, Report& report) {
  std::vector<std::string> addresses;
  std::vector<OpenDevice> devices;
  for (std::size_t at = 0; at < handles.size(); ++at) {
    const DeviceReport& one = report.devices[at];
    if (one.numa_node && std::ranges::find(report.numa_cpus, *one.numa_node, &NumaCpus::node) ==
                             report.numa_cpus.end()) {
      report.numa_cpus.push_back({*one.numa_node, cpus_of_node(sysfs_, *one.numa_node)});
    }
    addresses.push_back(one.fatal.empty() ? one.pci_address : "");
    devices.push_back({handles[at], one.pci_address});
  }
  std::ranges::sort(report.numa_cpus, {}, &NumaCpus::node);
  if (addresses != connected_) {
    connections_ = read_connections(library_, devices);
    connected_ = std::move(addresses);
  }
  for (std::size_t at = 0; at < handles.size(); ++at) {
    report.devices[at].peers = connections_[at].peers;
    report.devices[at].switch_links = connections_[at].switch_links;
  }
}

DeviceReport Sampler::read_device(abi::Handle device) {
  DeviceReader reader(library_, device);
  reader.identity();
  reader.memory();
  reader.load();
  reader.power();
  reader.partitions();
  reader.report().numa_node = numa_node(sysfs_, reader.report().pci_address);
  Processes processes = read_processes(library_, processes_, {device});
  if (reader.gave(processes.code, "processes"))
    reader.report().processes = std::move(processes.all);
  if (reader.report().mig == true) {
    read_slices(library_, processes_, device, reader.report());
    read_room(library_, device, reader.report());
  }
  return reader.report();
}

}  // namespace gflow::devices::nvml
