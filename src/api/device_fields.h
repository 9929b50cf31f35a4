// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/json_reader.h"
#include "api/json_writer.h"
#include "api/types.h"

/// Field lists of devices and who is on them.
namespace gflow::api {

template <class Io, Like<DeviceProcess> T>
void fields(Io& io, T& process) {
  io.field("pid", process.pid);
  io.known_text("user", process.user);
  io.known_text("name", process.name);
  io.field("memory_bytes", process.memory);
}

template <class Io, Like<TurnShare> T>
void fields(Io& io, T& share) {
  io.field("job", share.job);
  io.field("time_parts", share.time.parts);
}

template <class Io, Like<DeviceView> T>
void fields(Io& io, T& view) {
  auto& device = view.device;
  io.required("index", device.index);
  io.derived("available", view.available());
  io.field("jobs", view.jobs);
  io.field("drained", view.drained);
  io.field("drained_reason", view.drained_reason);
  io.field("gpu_mode", view.mode);
  io.field("turns", view.turns);
  io.field("share_free_parts", view.share_free.parts);
  io.field("memory_free_bytes", view.memory_free);
  io.field("model_short", view.model_short);
  io.field("vendor", device.vendor);
  io.field("model", device.model);
  io.field("uuid", device.uuid);
  io.known_text("pci_address", device.pci_address);
  io.field("numa_node", device.numa_node);
  io.field("memory_total_bytes", device.memory_total);
  io.field("memory_used_bytes", device.memory_used);
  io.field("utilization_percent", device.utilization_percent);
  io.field("temperature_celsius", device.temperature_celsius);
  io.field("power_milliwatts", device.power_milliwatts);
  io.field("power_limit_milliwatts", device.power_limit_milliwatts);
  io.field("usable", device.usable);
  io.field("trouble", device.trouble);
  io.field("processes", device.processes);
  io.field("foreign", view.foreign);
}

}  // namespace gflow::api
