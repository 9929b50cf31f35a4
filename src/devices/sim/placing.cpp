// SPDX-License-Identifier: Apache-2.0
#include "devices/sim/placing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "base/text.h"
#include "devices/pci_address.h"
#include "devices/sim/slices.h"

namespace gflow::devices::sim {
namespace {

constexpr std::size_t kPerDomain = 28;  // buses 1b, 23, 2b, ... f3
constexpr unsigned kFirstBus = 0x1b;
constexpr unsigned kBusStep = 8;

std::string address_number(std::size_t number) {
  const std::size_t bus = kFirstBus + kBusStep * (number % kPerDomain);
  return fmt::format("{:04x}:{:02x}:00.0", number / kPerDomain, bus);
}

/// FNV-1a, then the finishing steps of splitmix64: close inputs give unlike numbers.
std::uint64_t scrambled(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9U;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebU;
  return hash ^ (hash >> 31);
}

Result<void> give_addresses(std::vector<SimDevice>& devices) {
  std::set<std::string> taken;
  for (const SimDevice& one : devices) {
    const std::string& address = one.device.pci_address;
    if (!address.empty() && !taken.insert(address).second) {
      return fail(Code::Usage, fmt::format("two GPUs have the PCI address {}", address));
    }
  }
  std::size_t number = 0;
  for (SimDevice& one : devices) {
    while (one.device.pci_address.empty()) {
      const std::string address = address_number(number++);
      if (taken.insert(address).second) one.device.pci_address = address;
    }
  }
  return {};
}

}  // namespace

std::string made_up_uuid(std::string_view prefix, std::string_view of) {
  const std::uint64_t high = scrambled(fmt::format("{}/high", of));
  const std::uint64_t low = scrambled(fmt::format("{}/low", of));
  return fmt::format("{}-{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
                     prefix,
                     high >> 32,
                     high >> 16 & 0xFFFF,
                     high & 0xFFFF,
                     low >> 48,
                     low & 0xFFFF'FFFF'FFFF);
}

SimDevice idle_device(const Model& model) {
  SimDevice made;
  made.device.vendor = model.vendor;
  made.device.model = model.name;
  made.device.memory_total = model.memory;
  made.device.memory_used = model.idle_memory;
  made.device.utilization_percent = 0;
  made.device.temperature_celsius = model.idle_celsius;
  made.device.power_milliwatts = model.idle_watts * 1000;
  made.device.power_limit_milliwatts = model.power_limit_watts * 1000;
  return made;
}

Result<std::vector<SimDevice>> placed(std::vector<SimDevice> devices) {
  GF_CHECK(give_addresses(devices));
  std::ranges::sort(devices, pci_before, [](const SimDevice& one) -> const std::string& {
    return one.device.pci_address;
  });
  const std::size_t first_node = devices.size() < 4 ? devices.size() : (devices.size() + 1) / 2;
  std::set<std::string> uuids;
  for (std::size_t at = 0; at < devices.size(); ++at) {
    Device& device = devices[at].device;
    device.index = static_cast<int>(at);
    if (!device.numa_node) device.numa_node = at < first_node ? 0 : 1;
    if (device.uuid.empty()) {
      device.uuid = made_up_uuid("GPU", fmt::format("{}/{}", device.model, device.index));
    }
    name_slices(devices[at]);
    if (devices[at].state == DeviceState::Mig) place_slices(devices[at]);
    if (!uuids.insert(device.uuid).second) {
      return fail(Code::Usage, fmt::format("two GPUs have the UUID {}", printable(device.uuid)));
    }
    for (const SimSlice& slice : devices[at].slices) {
      if (uuids.insert(slice.uuid).second) continue;
      return fail(Code::Usage, fmt::format("two devices have the UUID {}", printable(slice.uuid)));
    }
  }
  return devices;
}

}  // namespace gflow::devices::sim
