// SPDX-License-Identifier: Apache-2.0
#include "dra/slices.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "core/catalogue.h"

namespace gflow::dra {
namespace {

using Json = nlohmann::json;

/// What an API server takes of a text, and of devices with taints in one slice.
constexpr std::size_t kMostText = 64;
constexpr std::size_t kMostDevices = 64;

/// As the API server writes it again: in the largest unit of which it is a whole number.
std::string quantity(Memory memory) {
  constexpr std::string_view kUnits = "KMGT";
  std::int64_t amount = memory.bytes;
  std::size_t unit = 0;
  while (unit < kUnits.size() && amount != 0 && amount % 1024 == 0) {
    amount /= 1024;
    ++unit;
  }
  return unit == 0 ? std::to_string(amount) : fmt::format("{}{}i", amount, kUnits[unit - 1]);
}

/// A text that is too long ends early, between two letters.
std::string short_text(std::string text) {
  if (text.size() <= kMostText) return text;
  const auto begins_letter = [](char byte) { return (byte & 0xc0) != 0x80; };
  std::size_t length = kMostText;
  while (length > 0 && !begins_letter(text[length])) --length;
  text.resize(length);
  return text;
}

void tell(Json& attributes, const std::string& name, std::string_view text) {
  if (!text.empty()) attributes[name] = {{"string", short_text(printable(text))}};
}

/// "00000000:3B:00.0" of a driver is "0000:3b:00.0" to Kubernetes; "" of what is no such address.
std::string bus_id(std::string_view address) {
  constexpr std::string_view kForm = "0000:00:00.0";
  const std::string text = to_lower(address);
  if (text.size() < kForm.size()) return "";
  const std::size_t above = text.size() - kForm.size();
  const auto is_digit = [](char letter) {
    return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'f');
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char formed = i < above ? '\0' : kForm[i - above];
    const bool fits = formed == '\0'  ? text[i] == '0'
                      : formed == '0' ? is_digit(text[i])
                                      : text[i] == formed;
    if (!fits) return "";
  }
  return text.substr(above);
}

Json attributes_of(const Device& device) {
  Json told = Json::object();
  tell(told, "uuid", device.uuid);
  tell(told, "vendor", device.vendor);
  tell(told, "model", catalogue::short_model(device.vendor, device.model));
  tell(told, "productName", device.model);
  if (!device.usable) {
    tell(told, "trouble", device.trouble.empty() ? "it cannot be used" : device.trouble);
  }
  tell(told, "resource.kubernetes.io/pciBusID", bus_id(device.pci_address));
  told["index"] = {{"int", device.index}};
  if (device.numa_node) told["numaNode"] = {{"int", *device.numa_node}};
  return told;
}

/// What is asked for of it may be any part; what is not asked for is all.
Json in_parts(const std::string& all, const std::string& least, const std::string& step) {
  Json range = {{"min", least}, {"max", all}};
  if (!step.empty()) range["step"] = step;
  return {{"value", all}, {"requestPolicy", {{"default", all}, {"validRange", range}}}};
}

Json capacity_of(const Device& device, bool can_share) {
  Json capacity = Json::object();
  const Memory memory = device.memory_total.value_or(Memory{});
  if (!can_share) {
    if (memory > Memory{}) capacity[kMemory] = {{"value", quantity(memory)}};
    return capacity;
  }
  const Memory whole{memory.bytes / Memory::mib(1).bytes * Memory::mib(1).bytes};
  capacity[kMemory] = in_parts(quantity(whole), "1Mi", "1Mi");
  // No step: what kube-scheduler (1.36) reckons with one are whole numbers.
  capacity[kShare] = in_parts("1", "100u", "");
  return capacity;
}

}  // namespace

std::string device_name(const Device& device) {
  if (device.mig) return "";
  std::string name = to_lower(device.uuid);
  for (char& letter : name) {
    const bool is_taken = (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
    if (!is_taken) letter = '-';
  }
  constexpr std::size_t kMostName = 63;
  if (name.size() > kMostName) name.resize(kMostName);
  const std::size_t from = name.find_first_not_of('-');
  return from == std::string::npos ? "" : name.substr(from, name.find_last_not_of('-') + 1 - from);
}

Json slice_devices(const Machine& machine, bool can_share) {
  Json devices = Json::array();
  for (const Device& device : machine.devices) {
    const std::string name = device_name(device);
    if (name.empty()) continue;
    // Where its memory is not known nobody can be held to a part of that.
    const bool is_shared = can_share && device.vendor == "nvidia" &&
                           device.memory_total.value_or(Memory{}) >= Memory::mib(1);
    Json one = {{"name", name}, {"attributes", attributes_of(device)}};
    Json capacity = capacity_of(device, is_shared);
    if (!capacity.empty()) one["capacity"] = std::move(capacity);
    if (is_shared) one["allowMultipleAllocations"] = true;
    if (!device.usable) {
      one["taints"] = {{{"key", fmt::format("{}/unusable", kDriver)}, {"effect", "NoSchedule"}}};
    }
    devices.push_back(std::move(one));
  }
  return devices;
}

std::vector<Json> make_slices(const Json& devices, const NodeName& node, std::int64_t generation) {
  std::vector<Json> slices;
  const std::size_t count = (devices.size() + kMostDevices - 1) / kMostDevices;
  for (std::size_t i = 0; i < count; ++i) {
    const auto from = devices.begin() + static_cast<std::ptrdiff_t>(i * kMostDevices);
    const std::size_t size = std::min(kMostDevices, devices.size() - i * kMostDevices);
    slices.push_back(
        {{"apiVersion", "resource.k8s.io/v1"},
         {"kind", "ResourceSlice"},
         {"metadata",
          {{"name", fmt::format("{}-{}-{}", node.name, kDriver, i)},
           {"ownerReferences",
            {{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node.name}, {"uid", node.uid}}}}}},
         {"spec",
          {{"driver", kDriver},
           {"nodeName", node.name},
           {"pool",
            {{"name", node.name}, {"generation", generation}, {"resourceSliceCount", count}}},
           {"devices", Json(from, from + static_cast<std::ptrdiff_t>(size))}}}});
  }
  return slices;
}

}  // namespace gflow::dra
