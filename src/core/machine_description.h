// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>

#include "core/description.h"
#include "core/machine.h"

/// What devices and drains consist of, row by row: how it is read is in description.h.
namespace gflow {

template <>
struct Description<DeviceProcess> {
  static constexpr std::tuple kFields{
      field<&DeviceProcess::pid>({.name = "pid", .help = "number of the process"}),
      field<&DeviceProcess::user>({.name = "user", .help = "user", .wire = Wire::NullIfDefault}),
      field<&DeviceProcess::name>(
          {.name = "name", .help = "its program", .wire = Wire::NullIfDefault}),
      field<&DeviceProcess::memory>(
          {.name = "memory_bytes", .help = "memory of the device it uses"}),
      field<&DeviceProcess::job>(
          {.name = "job", .help = "it belongs to, which does not hold the device"}),
  };
};

template <>
struct Description<MigDevice> {
  static constexpr std::tuple kFields{
      field<&MigDevice::parent>({.name = "parent", .help = "UUID of the GPU it is cut from"}),
      field<&MigDevice::profile>({.name = "profile", .help = "how large it is, as 3g.20gb"}),
      field<&MigDevice::gpu_instance>(
          {.name = "gpu_instance", .help = "number of the GPU instance"}),
      field<&MigDevice::compute_instance>(
          {.name = "compute_instance", .help = "number of the compute instance within it"}),
  };
};

/// Without `uses`, which the daemon fills for its own decisions.
template <>
struct Description<Device> {
  static constexpr std::tuple kFields{
      field<&Device::index>({.name = "index",
                             .help = "number of the device on its node, in PCI bus order",
                             .range = {0, 1023},
                             .wire = Wire::Required}),
      field<&Device::vendor>({.name = "vendor", .help = "nvidia, amd, intel or ascend"}),
      field<&Device::model>({.name = "model", .help = "as the driver reports it"}),
      field<&Device::uuid>({.name = "uuid", .help = "as the driver reports it"}),
      field<&Device::pci_address>({.name = "pci_address",
                                   .help = "where it is on the PCI bus",
                                   .wire = Wire::NullIfDefault}),
      field<&Device::numa_node>({.name = "numa_node", .help = "the NUMA node it is near to"}),
      field<&Device::memory_total>({.name = "memory_total_bytes", .help = "memory it has"}),
      field<&Device::memory_used>({.name = "memory_used_bytes", .help = "memory in use"}),
      field<&Device::utilization_percent>(
          {.name = "utilization_percent", .help = "part of the time any kernel ran"}),
      field<&Device::temperature_celsius>({.name = "temperature_celsius", .help = "now"}),
      field<&Device::power_milliwatts>({.name = "power_milliwatts", .help = "now"}),
      field<&Device::power_limit_milliwatts>(
          {.name = "power_limit_milliwatts", .help = "most it may draw"}),
      field<&Device::usable>({.name = "usable", .help = "whether it works at all"}),
      field<&Device::trouble>(
          {.name = "trouble", .help = "why it does not, or a reading is missing"}),
      field<&Device::processes>({.name = "processes", .help = "that are on it"}),
      field<&Device::mig>({.name = "mig", .help = "what it is of a GPU cut by MIG; null: a GPU"}),
  };
};

template <>
struct Description<Drain> {
  static constexpr std::tuple kFields{
      field<&Drain::node>({.name = "node", .help = "name of the node", .stored = Stored::Always}),
      field<&Drain::gpu>(
          {.name = "gpu",
           .help =
               "a device of it; none: the whole node, or where `uuid` is there the GPU with it"}),
      field<&Drain::reason>(
          {.name = "reason", .help = "why it was drained", .stored = Stored::Always}),
      field<&Drain::by>({.name = "by",
                         .help = "who asked for it",
                         .stored = Stored::Always,
                         .column = "by_user"}),
      field<&Drain::uuid>({.name = "uuid", .help = "of the device", .wire = Wire::NullIfDefault}),
  };
};

}  // namespace gflow
