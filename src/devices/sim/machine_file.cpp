// SPDX-License-Identifier: Apache-2.0
#include "devices/sim/machine_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "devices/missing.h"
#include "devices/pci_address.h"
#include "devices/sim/field_values.h"
#include "devices/sim/links.h"
#include "devices/sim/placing.h"
#include "devices/sim/slices.h"
#include "devices/sim/yaml.h"

namespace gflow::devices::sim {
namespace {

constexpr Range kPercent{0, 100};
constexpr Range kCelsius{0, 150};
constexpr Range kWatts{0, 10'000};
constexpr Range kNode{0, 1023};
constexpr Range kCpus{1, 65'536};
constexpr Range kNvmlCode{1, 999};

const std::vector<std::string>& gpu_keys() {
  static const std::vector<std::string> keys = {"model",
                                                "count",
                                                "vendor",
                                                "uuid",
                                                "pci_address",
                                                "device_nodes",
                                                "numa_node",
                                                "memory_total",
                                                "memory_used",
                                                "utilization_percent",
                                                "temperature_celsius",
                                                "power_watts",
                                                "power_limit_watts",
                                                "unsupported",
                                                "state",
                                                "mig",
                                                "processes"};
  return keys;
}

/// The device of "model", or of "model" and "memory_total" where the table does not know it.
Result<SimDevice> start_device(const Fields& gpu) {
  const auto name = GF_TRY(gpu.text("model"));
  if (!name) return gpu.error("model", "is needed");
  const auto total = GF_TRY(gpu.memory("memory_total"));
  if (const auto model = find_model(*name)) {
    SimDevice made = idle_device(*model);
    if (total) made.device.memory_total = total;
    return made;
  }
  if (!total) {
    return gpu.error("model",
                     unknown_model_text(*name) + "; any other name needs its memory_total as well");
  }
  SimDevice made;
  made.device.vendor = "nvidia";
  made.device.model = *name;
  made.device.memory_total = total;
  made.device.memory_used = Memory{};
  made.device.utilization_percent = 0;
  return made;
}

Result<void> read_identity(const Fields& gpu, Device& device) {
  if (const auto vendor = GF_TRY(gpu.text("vendor"))) {
    GF_CHECK(choice(gpu, "vendor", {"nvidia", "amd", "intel", "ascend"}));
    device.vendor = *vendor;
  }
  if (auto uuid = GF_TRY(read_uuid(gpu))) device.uuid = *std::move(uuid);
  if (const auto address = GF_TRY(gpu.text("pci_address"))) {
    const auto normal = normal_pci_address(*address);
    if (!normal) {
      return gpu.error("pci_address",
                       fmt::format("'{}' is not of the form 0000:3b:00.0", printable(*address)));
    }
    device.pci_address = *normal;
  }
  for (const std::string& text : GF_TRY(gpu.texts("device_nodes"))) {
    const auto nodes = parse_device_nodes(text);
    if (!nodes || nodes->first != nodes->last) {
      return gpu.error(
          "device_nodes",
          fmt::format("'{}' is not of the form 195:0, as 'stat -c %Hr:%Lr FILE' has it",
                      printable(text)));
    }
    device.nodes.push_back(*nodes);
  }
  return take_number(gpu, "numa_node", kNode, device.numa_node);
}

/// What is used where the file does not say: what an idle device uses, and its processes.
Memory used_memory(const SimDevice& made) {
  Memory used = made.device.memory_used.value_or(Memory{});
  for (const SimProcess& one : made.processes) used += one.process.memory.value_or(Memory{});
  return used;
}

Result<void> read_readings(const Fields& gpu, SimDevice& made) {
  Device& device = made.device;
  GF_CHECK(take_number(gpu, "utilization_percent", kPercent, device.utilization_percent));
  GF_CHECK(take_number(gpu, "temperature_celsius", kCelsius, device.temperature_celsius));
  if (const auto watts = GF_TRY(gpu.number("power_watts", kWatts))) {
    device.power_milliwatts = static_cast<int>(*watts) * 1000;
  }
  if (const auto watts = GF_TRY(gpu.number("power_limit_watts", kWatts))) {
    device.power_limit_milliwatts = static_cast<int>(*watts) * 1000;
  }
  const auto used = GF_TRY(gpu.memory("memory_used"));
  device.memory_used = used ? *used : used_memory(made);
  if (device.memory_used > device.memory_total) {
    return gpu.error(used ? "memory_used" : "processes",
                     fmt::format("{} used is more than the GPU's {}",
                                 memory_text(*device.memory_used),
                                 memory_text(*device.memory_total)));
  }
  return {};
}

Result<SimDevice> read_device(const Fields& gpu) {
  SimDevice made = GF_TRY(start_device(gpu));
  GF_CHECK(read_identity(gpu, made.device));
  made.processes = GF_TRY(read_processes(gpu));
  GF_CHECK(read_readings(gpu, made));
  made.unsupported = GF_TRY(gpu.texts("unsupported"));
  for (const std::string& name : made.unsupported) {
    if (std::ranges::find(reading_names(), name) == reading_names().end()) {
      return gpu.error(
          "unsupported",
          fmt::format(
              "no reading '{}'; there are {}", printable(name), join(reading_names(), ", ")));
    }
  }
  constexpr std::array kStates = {DeviceState::Ok, DeviceState::Lost, DeviceState::Mig};
  made.state = kStates.at(GF_TRY(choice(gpu, "state", {"ok", "lost", "mig"})).value_or(0));
  made.slices = GF_TRY(read_slices(gpu, made));
  if (gpu.find("mig") != nullptr && made.state == DeviceState::Ok) made.state = DeviceState::Mig;
  return made;
}

/// One entry of "gpus", with what "defaults" says where the entry says nothing.
Result<Fields> gpu_fields(const Yaml& node,
                          const Yaml* defaults,
                          const std::string& file,
                          const std::string& path) {
  GF_CHECK(Fields::of(node, file, path, gpu_keys()));
  Yaml merged = node;
  if (defaults != nullptr) {
    GF_CHECK(Fields::of(*defaults, file, "defaults", gpu_keys()));
    auto& entries = std::get<std::vector<Yaml::Entry>>(merged.value);
    for (const auto& entry : std::get<std::vector<Yaml::Entry>>(defaults->value)) {
      if (std::ranges::find(entries, entry.key, &Yaml::Entry::key) == entries.end()) {
        entries.push_back(entry);
      }
    }
  }
  return Fields::of(merged, file, path, gpu_keys());
}

Result<std::vector<SimDevice>> read_devices(const Fields& top) {
  std::vector<SimDevice> devices;
  const std::vector<Yaml> nodes = GF_TRY(top.list("gpus"));
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    const std::string path = fmt::format("gpus[{}]", at);
    const Fields gpu = GF_TRY(gpu_fields(nodes[at], top.find("defaults"), top.file(), path));
    const auto room = static_cast<std::int64_t>(kMaxDevices - devices.size());
    const auto count = GF_TRY(gpu.number("count", {1, std::max<std::int64_t>(room, 1)}));
    if (room == 0) return top.error("gpus", fmt::format("at most {} GPUs", kMaxDevices));
    const SimDevice made = GF_TRY(read_device(gpu));
    const bool is_one =
        !made.device.uuid.empty() || !made.device.pci_address.empty() || !made.device.nodes.empty();
    if (count.value_or(1) > 1 && is_one) {
      return gpu.error(
          "count", "GPUs with a uuid, pci_address or device_nodes have to be listed one by one");
    }
    devices.insert(devices.end(), static_cast<std::size_t>(count.value_or(1)), made);
  }
  auto all = placed(std::move(devices));
  if (!all) return top.error("gpus", all.error().message);
  return std::move(*all);
}

/// The matrix of the file, else what a machine with such GPUs usually has.
Result<Topology> read_topology(const Fields& top, std::vector<SimDevice>& devices) {
  const auto matrix = GF_TRY(top.text("topology"));
  if (!matrix) return links_of(devices);
  auto topology = links_from(*matrix, devices);
  if (!topology) return top.error("topology", topology.error().message);
  return topology;
}

Result<CallFault> read_fault(const Fields& calls, const std::string& call) {
  const std::string text = GF_TRY(calls.text(call)).value_or("");
  if (text == "hang") return CallFault{call, CallFault::Kind::Hang, 0};
  if (text == "abort") return CallFault{call, CallFault::Kind::Abort, 0};
  const auto code = parse_number(text);
  if (!code || *code < kNvmlCode.least || *code > kNvmlCode.most) {
    return calls.error(call, "has to be hang, abort or an NVML return code from 1 to 999");
  }
  return CallFault{call, CallFault::Kind::Fail, static_cast<int>(*code)};
}

Result<NvmlBehaviour> read_nvml(const Yaml& node, const std::string& file) {
  const Fields fields = GF_TRY(Fields::of(node, file, "nvml", {"calls", "process_entry_bytes"}));
  NvmlBehaviour behaviour;
  const auto size = GF_TRY(choice(fields, "process_entry_bytes", {"16", "24", "32"}));
  behaviour.process_entry_bytes = 16 + 8 * static_cast<int>(size.value_or(1));
  const Yaml* calls = fields.find("calls");
  if (calls == nullptr) return behaviour;
  std::vector<std::string> names;
  if (const auto* entries = std::get_if<std::vector<Yaml::Entry>>(&calls->value)) {
    for (const Yaml::Entry& entry : *entries) names.push_back(entry.key);
  }
  const Fields faults = GF_TRY(Fields::of(*calls, file, "nvml.calls", names));
  for (const std::string& name : names) {
    if (!name.starts_with("nvml")) return faults.error(name, "is not the name of an NVML call");
    behaviour.faults.push_back(GF_TRY(read_fault(faults, name)));
  }
  return behaviour;
}

}  // namespace

Result<SimMachine> read_machine(const std::string& text, const std::string& file) {
  const Yaml document = GF_TRY(read_yaml(text, file));
  const Fields top = GF_TRY(Fields::of(
      document,
      file,
      "",
      {"version", "name", "driver", "cpus", "memory", "defaults", "gpus", "topology", "nvml"}));
  GF_CHECK(choice(top, "version", {"1"}));
  if (top.find("gpus") == nullptr) return top.error("gpus", "is needed: a list, [] for no GPUs");
  SimMachine machine;
  machine.name = GF_TRY(top.text("name")).value_or("");
  if (!machine.name.empty() && !is_node_name(machine.name)) {
    return top.error("name", "has to be 1 to 64 letters, digits, '.', '-' and '_'");
  }
  machine.driver = GF_TRY(top.text("driver")).value_or("");
  GF_CHECK(take_number(top, "cpus", kCpus, machine.cpus));
  machine.memory = GF_TRY(top.memory("memory"));
  machine.devices = GF_TRY(read_devices(top));
  machine.topology = GF_TRY(read_topology(top, machine.devices));
  if (const Yaml* nvml = top.find("nvml")) machine.nvml = GF_TRY(read_nvml(*nvml, file));
  return machine;
}

}  // namespace gflow::devices::sim
