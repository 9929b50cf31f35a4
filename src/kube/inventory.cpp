// SPDX-License-Identifier: Apache-2.0
#include "kube/inventory.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "kube/fields.h"

namespace gflow::kube {
namespace {

using Json = nlohmann::json;

constexpr int kMostDevices = 1024;

std::optional<ListedDevice> device_of(const Json& one) {
  ListedDevice device{.resource = text(one, "resource"),
                      .index = number(one, "index", -1),
                      .uuid = text(one, "uuid"),
                      .model = text(one, "model"),
                      .trouble = text(one, "trouble")};
  if (device.resource.empty() || device.index < 0 || device.index >= kMostDevices) {
    return std::nullopt;
  }
  const Json& memory = part(one, "memory_bytes");
  if (memory.is_number_unsigned()) device.memory = Memory{memory.get<std::int64_t>()};
  if (device.memory.bytes < 0) return std::nullopt;
  return device;
}

}  // namespace

std::string inventory_text(const std::vector<ListedDevice>& devices) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ListedDevice& one : devices) {
    nlohmann::ordered_json device = {
        {"resource", one.resource}, {"index", one.index}, {"uuid", one.uuid}, {"model", one.model}};
    if (one.memory > Memory{}) device["memory_bytes"] = one.memory.bytes;
    if (!one.trouble.empty()) device["trouble"] = one.trouble;
    list.push_back(std::move(device));
  }
  return nlohmann::ordered_json{{"devices", std::move(list)}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
}

std::vector<ListedDevice> read_inventory(const std::string& text) {
  const Json document = Json::parse(text, nullptr, false);
  std::vector<ListedDevice> devices;
  std::set<std::pair<std::string, int>> names;
  std::set<std::string> uuids;
  for (const Json& one : part(document, "devices")) {
    auto device = device_of(one);
    const bool is_new = device && names.emplace(device->resource, device->index).second &&
                        uuids.insert(device->uuid).second;
    if (!is_new) return {};
    devices.push_back(*std::move(device));
  }
  return devices;
}

}  // namespace gflow::kube
