// SPDX-License-Identifier: Apache-2.0
#include "kube/want.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "core/catalogue.h"
#include "core/gpu_request.h"
#include "kube/quantity.h"

namespace gflow::kube {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMilli = 1000;
constexpr std::int64_t kMostDevices = 1024;

int whole_of(std::int64_t milli) {
  return static_cast<int>(std::min(milli / kMilli, kMostDevices));
}

/// The bytes of thousandths, rounded up.
Memory bytes_of(std::int64_t milli) {
  return Memory{milli / kMilli + (milli % kMilli > 0 ? 1 : 0)};
}

/// The one resource a pod asks GPUs of; its count is 0 if it asks for none.
struct Count {
  std::string_view vendor;
  int gpus = 0;
};
Result<Count> count_of(const Pod& pod) {
  Count count;
  for (const GpuResource& resource : kGpuResources) {
    const std::int64_t asked = amount_of(pod.requests, resource.name);
    if (asked == 0) continue;
    if (count.gpus > 0) {
      return fail(Code::Usage, "it asks for GPUs of two resources: a pod has those of one");
    }
    if (asked > kMostDevices * kMilli) {
      return fail(Code::Usage, fmt::format("it asks for over {} GPUs", kMostDevices));
    }
    count = {resource.vendor, whole_of(asked)};
  }
  return count;
}

std::string label_of(const Node& node, std::string_view key) {
  const auto at = node.labels.find(std::string(key));
  return at == node.labels.end() ? std::string() : at->second;
}

std::string model_of(const Node& node, std::string_view vendor) {
  std::string model;
  if (vendor == "nvidia") model = label_of(node, "nvidia.com/gpu.product");
  if (vendor == "amd") model = label_of(node, "amd.com/gpu.product-name");
  if (model.empty()) model = label_of(node, "gpu-type");
  // Where NVIDIA's plugin offers MIG devices as nvidia.com/gpu (its strategy "single"), the label
  // has their profile. A pod that counts GPUs counts these, so they are that model here.
  return catalogue::is_slice(model) ? catalogue::gpu_of_slice(model) : model;
}

std::optional<Memory> memory_of(const Node& node,
                                std::string_view vendor,
                                const std::string& model) {
  if (vendor == "nvidia") {
    const auto mib = parse_number(label_of(node, "nvidia.com/gpu.memory"));
    if (mib && *mib < (std::uint64_t{1} << 40)) return Memory::mib(static_cast<std::int64_t>(*mib));
  }
  return catalogue::memory_of(catalogue::short_model(vendor, model));
}

/// What a pod's annotation calls a device, which is known by that.
std::string name_of(std::string_view resource, int index) {
  return fmt::format("{}/{}", resource, index);
}

/// Whether gflow-device-plugin gives out the node's devices, which it lists before long, or did.
bool has_plugin(const Node& node) { return amount_of(node.allocatable, kAllocationResource) > 0; }

/// As many as the kubelet offers, all alike. Which they are is not known where they are to be
/// listed.
std::vector<Device> counted_of(const Node& node, const GpuResource& resource, int offered) {
  const std::string model = model_of(node, resource.vendor);
  std::vector<Device> devices(static_cast<std::size_t>(offered));
  for (int i = 0; i < offered; ++i) {
    Device& device = devices[static_cast<std::size_t>(i)];
    device.model = model;
    device.uuid = name_of(resource.name, i);
    device.memory_total = memory_of(node, resource.vendor, model);
    device.usable = !has_plugin(node);
    if (!device.usable) device.trouble = "its node does not list it yet";
  }
  return devices;
}

/// Those of the node's inventory. Where its kubelet offers fewer than work, as one does whose
/// device plugin is gone, the last ones are none for now.
std::vector<Device> listed_of(const Node& node, const GpuResource& resource, int offered) {
  std::vector<Device> devices;
  for (const ListedDevice& one : node.inventory) {
    if (one.resource != resource.name) continue;
    Device device;
    device.model = one.model;
    device.uuid = name_of(resource.name, one.index);
    device.memory_total = one.memory > Memory{} ? std::optional(one.memory)
                                                : memory_of(node, resource.vendor, one.model);
    device.trouble = one.trouble;
    if (device.trouble.empty() && offered-- <= 0) device.trouble = "its kubelet does not offer it";
    device.usable = device.trouble.empty();
    devices.push_back(std::move(device));
  }
  return devices;
}

/// 1 to 231 of 1 and more: three bits behind the first, and how many follow.
int steps(std::uint32_t priority) {
  const auto bits = static_cast<int>(std::bit_width(priority));
  if (bits <= 3) return static_cast<int>(priority);
  return 8 * (bits - 3) + static_cast<int>((priority >> (bits - 4)) & 7U);
}

}  // namespace

Result<gflow::Request> request_of(const Pod& pod) {
  for (const std::string& mistake : {pod.mistake, pod.gang_mistake}) {
    if (!mistake.empty()) return fail(Code::Usage, mistake);
  }
  const Count count = GF_TRY(count_of(pod));
  gflow::Request request;
  request.gpus = count.gpus;
  request.vendor = count.vendor;
  if (!pod.gpu.empty()) {
    auto asked = parse_gpu_request(pod.gpu);
    if (!asked) return with_context(asked.error(), kGpuAnnotation);
    const bool is_whole = asked->share == Share::whole();
    if (count.gpus > 0 && (!is_whole || asked->gpus != count.gpus)) {
      return fail(
          Code::Usage,
          fmt::format("gflow/gpu asks for {} and its containers for {} GPUs: leave the GPUs "
                      "of the containers out, or ask for as many",
                      gpu_request_text(*asked),
                      count.gpus));
    }
    request.vendor.clear();
    apply(*asked, request);
    if (request.see_all) {
      return fail(Code::Usage, "gflow/gpu: a pod sees the GPUs that it has, not all of a node");
    }
    if (request.vendor.empty()) request.vendor = count.vendor;
  }
  const std::int64_t cpus = amount_of(pod.requests, "cpu");
  if (cpus > std::numeric_limits<int>::max()) return fail(Code::Usage, "it asks for too many CPUs");
  request.cpus = static_cast<int>(cpus);
  request.memory = bytes_of(amount_of(pod.requests, "memory"));
  GF_CHECK(normalise(request));
  return request;
}

int priority_of(int priority) {
  if (priority == 0) return kDefaultPriority;
  if (priority > 0) return kDefaultPriority + steps(static_cast<std::uint32_t>(priority));
  const auto below = static_cast<std::uint32_t>(-static_cast<std::int64_t>(priority));
  return std::max(0, kDefaultPriority - 1 - steps(below) / 26);
}

Amounts extras_of(const Pod& pod) {
  Amounts extras = pod.requests;
  std::erase_if(extras,
                [](const auto& one) { return one.first == "cpu" || one.first == "memory"; });
  extras["pods"] = kMilli;
  return extras;
}

std::vector<Device> devices_of(const Node& node) {
  std::vector<Device> devices;
  for (const GpuResource& resource : kGpuResources) {
    const int offered = whole_of(amount_of(node.allocatable, resource.name));
    std::vector<Device> those = listed_of(node, resource, offered);
    if (those.empty()) those = counted_of(node, resource, offered);
    for (Device& device : those) {
      device.index = static_cast<int>(devices.size());
      device.vendor = resource.vendor;
      devices.push_back(std::move(device));
    }
  }
  return devices;
}

std::string text_of(const ChosenDevices& chosen) {
  nlohmann::ordered_json devices = nlohmann::ordered_json::array();
  for (const Chosen& one : chosen.devices) {
    nlohmann::ordered_json device = {
        {"resource", one.resource}, {"index", one.index}, {"share_parts", one.share.parts}};
    if (one.memory > Memory{}) device["memory_bytes"] = one.memory.bytes;
    devices.push_back(std::move(device));
  }
  return nlohmann::ordered_json{{"node", chosen.node}, {"devices", std::move(devices)}}.dump();
}

std::optional<ChosenDevices> read_chosen(const std::string& text) {
  const Json document = Json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("node") || !document["node"].is_string() ||
      !document.contains("devices") || !document["devices"].is_array()) {
    return std::nullopt;
  }
  ChosenDevices chosen{document["node"].get<std::string>(), {}};
  for (const Json& one : document["devices"]) {
    const bool ok = one.is_object() && one.contains("resource") && one["resource"].is_string() &&
                    one.contains("index") && one["index"].is_number_unsigned() &&
                    one["index"].get<std::uint64_t>() < kMostDevices &&
                    one.contains("share_parts") && one["share_parts"].is_number_unsigned() &&
                    one["share_parts"].get<std::uint64_t>() <= Share::kWholeParts;
    if (!ok) return std::nullopt;
    Chosen device{one["resource"].get<std::string>(),
                  one["index"].get<int>(),
                  Share{one["share_parts"].get<std::int32_t>()},
                  Memory{}};
    const auto memory = one.find("memory_bytes");
    if (memory != one.end() && memory->is_number_integer()) {
      device.memory = Memory{memory->get<std::int64_t>()};
    }
    chosen.devices.push_back(std::move(device));
  }
  return chosen;
}

Chosen name_device(const std::vector<Device>& devices, int index) {
  Chosen chosen;
  const auto at = std::ranges::find(devices, index, &Device::index);
  if (at == devices.end()) return chosen;
  const std::size_t slash = at->uuid.rfind('/');
  chosen.resource = at->uuid.substr(0, slash);
  chosen.index = static_cast<int>(parse_number(at->uuid.substr(slash + 1)).value_or(0));
  return chosen;
}

std::optional<int> index_of(const std::vector<Device>& devices, const Chosen& chosen) {
  const auto at = std::ranges::find(devices, name_of(chosen.resource, chosen.index), &Device::uuid);
  if (at == devices.end()) return std::nullopt;
  return at->index;
}

namespace {

bool is_as_asked(const Chosen& chosen, const gflow::Request& request) {
  const Share share = request.mode == GpuMode::Fraction ? request.share : Share::whole();
  const bool has_memory = request.gpu_memory > Memory{};
  return chosen.share == share && (!has_memory || chosen.memory == request.gpu_memory);
}

}  // namespace

std::optional<std::vector<int>> devices_named(const std::string& allocation,
                                              const std::string& node,
                                              const std::vector<Device>& devices,
                                              const gflow::Request& request) {
  const auto chosen = read_chosen(allocation);
  if (!chosen || chosen->node != node) return std::nullopt;
  std::vector<int> indices;
  for (const Chosen& one : chosen->devices) {
    const auto index = index_of(devices, one);
    if (!index || !is_as_asked(one, request)) return std::nullopt;
    indices.push_back(*index);
  }
  std::ranges::sort(indices);
  const bool is_sane = std::ranges::adjacent_find(indices) == indices.end() &&
                       static_cast<int>(indices.size()) == request.gpus;
  return is_sane ? std::optional(std::move(indices)) : std::nullopt;
}

}  // namespace gflow::kube
