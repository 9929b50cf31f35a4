// SPDX-License-Identifier: Apache-2.0
#include "devices/nvml/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace gflow::devices::nvml {
namespace {

using json = nlohmann::ordered_json;  // people read the probe's line too

template <typename T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

json bytes_or_null(const std::optional<Memory>& memory) {
  return memory ? json(memory->bytes) : json();
}

json process_json(const ProcessReport& one) {
  return {{"pid", one.process.pid},
          {"user", one.process.user},
          {"name", one.process.name},
          {"memory_bytes", bytes_or_null(one.process.memory)},
          {"kind", one.kind == ProcessKind::Compute ? "compute" : "graphics"}};
}

json processes_json(const std::vector<ProcessReport>& processes) {
  json list = json::array();
  for (const ProcessReport& one : processes) list.push_back(process_json(one));
  return list;
}

json nodes_json(const std::vector<DeviceNodes>& nodes) {
  json list = json::array();
  for (const DeviceNodes& one : nodes) list.push_back(device_nodes_text(one));
  return list;
}

json missing_json(const std::vector<Missing>& missing) {
  json object = json::object();
  for (const Missing& one : missing) object[one.reading] = one.why;
  return object;
}

json slice_json(const SliceReport& slice) {
  return {{"name", slice.name},
          {"uuid", slice.uuid},
          {"profile", slice.profile},
          {"gpu_instance", slice.gpu_instance},
          {"compute_instance", slice.compute_instance},
          {"memory_total_bytes", bytes_or_null(slice.memory_total)},
          {"memory_used_bytes", bytes_or_null(slice.memory_used)},
          {"processes", processes_json(slice.processes)},
          {"nodes", nodes_json(slice.nodes)},
          {"missing", missing_json(slice.missing)},
          {"fatal", slice.fatal}};
}

json kind_json(const MigKind& kind) {
  return {{"profile", kind.profile},
          {"size", kind.size},
          {"starts", kind.starts},
          {"most", kind.most},
          {"memory_bytes", kind.memory.bytes}};
}

json instance_json(const MigInstance& one) {
  return {{"id", one.id}, {"profile", one.profile}, {"start", one.start}, {"size", one.size}};
}

json device_json(const DeviceReport& device) {
  json kinds = json::array();
  for (const MigKind& one : device.kinds) kinds.push_back(kind_json(one));
  json instances = json::array();
  for (const MigInstance& one : device.instances) instances.push_back(instance_json(one));
  json slices = json::array();
  for (const SliceReport& one : device.slices) slices.push_back(slice_json(one));
  json peers = json::array();
  for (const PeerReport& one : device.peers) {
    peers.push_back({{"pci_address", one.pci_address},
                     {"path", path_class_name(one.path)},
                     {"links", one.links}});
  }
  return {{"name", device.name},
          {"uuid", device.uuid},
          {"pci_address", device.pci_address},
          {"numa_node", or_null(device.numa_node)},
          {"memory_total_bytes", bytes_or_null(device.memory_total)},
          {"memory_used_bytes", bytes_or_null(device.memory_used)},
          {"utilization_percent", or_null(device.utilization_percent)},
          {"temperature_celsius", or_null(device.temperature_celsius)},
          {"power_milliwatts", or_null(device.power_milliwatts)},
          {"power_limit_milliwatts", or_null(device.power_limit_milliwatts)},
          {"minor", or_null(device.minor)},
          {"nodes", nodes_json(device.nodes)},
          {"mig", or_null(device.mig)},
          {"slices", slices},
          {"mig_unread", device.mig_unread},
          {"kinds", kinds},
          {"instances", instances},
          {"room_unread", device.room_unread},
          {"processes", processes_json(device.processes)},
          {"missing", missing_json(device.missing)},
          {"fatal", device.fatal},
          {"peers", peers},
          {"switch_links", device.switch_links}};
}

template <typename T>
std::optional<T> optional_at(const json& object, const char* key) {
  const json& value = object.at(key);
  return value.is_null() ? std::nullopt : std::optional<T>(value.get<T>());
}

std::optional<Memory> memory_at(const json& object, const char* key) {
  const auto bytes = optional_at<std::int64_t>(object, key);
  return bytes ? std::optional(Memory{*bytes}) : std::nullopt;
}

ProcessReport process_from(const json& one) {
  ProcessReport read;
  read.process.pid = one.at("pid").get<int>();
  read.process.user = one.at("user").get<std::string>();
  read.process.name = one.at("name").get<std::string>();
  read.process.memory = memory_at(one, "memory_bytes");
  read.kind = one.at("kind") == "graphics" ? ProcessKind::Graphics : ProcessKind::Compute;
  return read;
}

std::vector<ProcessReport> processes_from(const json& list) {
  std::vector<ProcessReport> read;
  for (const json& process : list) read.push_back(process_from(process));
  return read;
}

std::vector<DeviceNodes> nodes_from(const json& list) {
  std::vector<DeviceNodes> read;
  for (const json& one : list) {
    if (const auto nodes = parse_device_nodes(one.get<std::string>())) read.push_back(*nodes);
  }
  return read;
}

std::vector<Missing> missing_from(const json& object) {
  std::vector<Missing> read;
  for (const auto& [reading, why] : object.items()) {
    read.push_back({reading, why.get<std::string>()});
  }
  return read;
}

SliceReport slice_from(const json& one) {
  SliceReport read;
  read.name = one.at("name").get<std::string>();
  read.uuid = one.at("uuid").get<std::string>();
  read.profile = one.at("profile").get<std::string>();
  read.gpu_instance = one.at("gpu_instance").get<int>();
  read.compute_instance = one.at("compute_instance").get<int>();
  read.memory_total = memory_at(one, "memory_total_bytes");
  read.memory_used = memory_at(one, "memory_used_bytes");
  read.processes = processes_from(one.at("processes"));
  read.nodes = nodes_from(one.at("nodes"));
  read.missing = missing_from(one.at("missing"));
  read.fatal = one.at("fatal").get<std::string>();
  return read;
}

MigKind kind_from(const json& one) {
  return {.profile = one.at("profile").get<std::string>(),
          .size = one.at("size").get<int>(),
          .starts = one.at("starts").get<std::vector<int>>(),
          .most = one.at("most").get<int>(),
          .memory = Memory{one.at("memory_bytes").get<std::int64_t>()}};
}

MigInstance instance_from(const json& one) {
  return {.id = one.at("id").get<int>(),
          .profile = one.at("profile").get<std::string>(),
          .start = one.at("start").get<int>(),
          .size = one.at("size").get<int>()};
}

DeviceReport device_from(const json& one) {
  DeviceReport read;
  read.name = one.at("name").get<std::string>();
  read.uuid = one.at("uuid").get<std::string>();
  read.pci_address = one.at("pci_address").get<std::string>();
  read.numa_node = optional_at<int>(one, "numa_node");
  read.memory_total = memory_at(one, "memory_total_bytes");
  read.memory_used = memory_at(one, "memory_used_bytes");
  read.utilization_percent = optional_at<int>(one, "utilization_percent");
  read.temperature_celsius = optional_at<int>(one, "temperature_celsius");
  read.power_milliwatts = optional_at<int>(one, "power_milliwatts");
  read.power_limit_milliwatts = optional_at<int>(one, "power_limit_milliwatts");
  read.minor = optional_at<int>(one, "minor");
  read.nodes = nodes_from(one.at("nodes"));
  read.mig = optional_at<bool>(one, "mig");
  for (const json& slice : one.at("slices")) read.slices.push_back(slice_from(slice));
  read.mig_unread = one.at("mig_unread").get<std::string>();
  for (const json& kind : one.at("kinds")) read.kinds.push_back(kind_from(kind));
  for (const json& instance : one.at("instances")) {
    read.instances.push_back(instance_from(instance));
  }
  read.room_unread = one.at("room_unread").get<std::string>();
  read.processes = processes_from(one.at("processes"));
  read.missing = missing_from(one.at("missing"));
  read.fatal = one.at("fatal").get<std::string>();
  for (const json& peer : one.at("peers")) {
    const auto path = parse_path_class(peer.at("path").get<std::string>());
    read.peers.push_back({peer.at("pci_address").get<std::string>(),
                          path.value_or(PathClass::Sys),
                          peer.at("links").get<int>()});
  }
  read.switch_links = one.at("switch_links").get<int>();
  return read;
}

}  // namespace

std::string to_line(const Report& report) {
  json devices = json::array();
  for (const DeviceReport& device : report.devices) devices.push_back(device_json(device));
  json numa_cpus = json::array();
  for (const NumaCpus& one : report.numa_cpus) {
    numa_cpus.push_back({{"node", one.node}, {"cpus", one.cpus}});
  }
  const json all = {{"version", 1},
                    {"error", report.error},
                    {"driver", report.driver},
                    {"count", report.devices.size()},
                    {"devices", devices},
                    {"unreachable", report.unreachable},
                    {"numa_cpus", numa_cpus},
                    {"gpu_nodes", nodes_json(report.gpu_nodes)}};
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<Report> from_line(std::string_view line) {
  try {
    const json all = json::parse(line);
    if (all.at("version") != 1) return fail(Code::Failure, "the probe is of another version");
    Report report;
    report.error = all.at("error").get<std::string>();
    report.driver = all.at("driver").get<std::string>();
    for (const json& device : all.at("devices")) report.devices.push_back(device_from(device));
    report.unreachable = all.at("unreachable").get<std::vector<std::string>>();
    for (const json& one : all.at("numa_cpus")) {
      report.numa_cpus.push_back({one.at("node").get<int>(), one.at("cpus").get<std::string>()});
    }
    report.gpu_nodes = nodes_from(all.at("gpu_nodes"));
    return report;
  } catch (const json::exception& problem) {
    return fail(Code::Failure,
                fmt::format("the probe's answer is not understood: {}", printable(problem.what())));
  }
}

}  // namespace gflow::devices::nvml
