// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/machine.h"
#include "devices/missing.h"

namespace gflow::devices::nvml {

/// What a process does on a GPU. One that does both computes. Only those that compute keep a GPU
/// from a job: a desktop (Xorg, gnome-shell) draws on the GPUs of most workstations.
enum class ProcessKind { Compute, Graphics };

struct ProcessReport {
  DeviceProcess process;
  ProcessKind kind = ProcessKind::Compute;

  friend bool operator==(const ProcessReport&, const ProcessReport&) = default;
};

/// Another GPU as seen from one.
struct PeerReport {
  std::string pci_address;
  PathClass path = PathClass::Sys;
  int links = 0;  ///< NVLinks that are up between the two

  friend bool operator==(const PeerReport&, const PeerReport&) = default;
};

/// A MIG device of a GPU.
struct SliceReport {
  std::string name;
  std::string uuid;
  std::string profile;  ///< "3g.20gb"
  int gpu_instance = 0;
  int compute_instance = 0;
  std::optional<Memory> memory_total;
  std::optional<Memory> memory_used;
  std::vector<ProcessReport> processes;
  std::vector<Missing> missing;      ///< why one of the above is empty
  std::string fatal;                 ///< why it cannot be used at all; "" else
  std::vector<DeviceNodes> nodes{};  ///< of its instances; its GPU's are needed as well

  friend bool operator==(const SliceReport&, const SliceReport&) = default;
};

/// One GPU as the driver answered.
struct DeviceReport {
  std::string name;
  std::string uuid;
  std::string pci_address;
  std::optional<int> numa_node;
  std::optional<Memory> memory_total;
  std::optional<Memory> memory_used;
  std::optional<int> utilization_percent;
  std::optional<int> temperature_celsius;
  std::optional<int> power_milliwatts;
  std::optional<int> power_limit_milliwatts;
  std::optional<bool> mig;          ///< MIG is enabled; empty if the model has none
  std::vector<SliceReport> slices;  ///< its MIG devices
  /// Why it is not known whether MIG is enabled, or which MIG devices there are besides these; ""
  /// where it is.
  std::string mig_unread;
  /// Where MIG is enabled: what it can be cut into, and the GPU instances there are.
  std::vector<MigKind> kinds;
  std::vector<MigInstance> instances;
  std::string room_unread;  ///< why these are not told; "" where they are
  std::vector<ProcessReport> processes;
  std::vector<Missing> missing;      ///< why one of the above is empty
  std::string fatal;                 ///< why the GPU cannot be used at all: "GPU is lost"; "" else
  std::vector<PeerReport> peers;     ///< the others; empty if the driver does not tell
  int switch_links = 0;              ///< NVLinks to NVSwitch
  std::optional<int> minor{};        ///< of /dev/nvidiaN, which is not its index
  std::vector<DeviceNodes> nodes{};  ///< that and its others; empty without a minor number

  friend bool operator==(const DeviceReport&, const DeviceReport&) = default;
};

/// One reading of the whole machine.
struct Report {
  std::string error;                     ///< why there is no reading; "" if there is one
  std::string driver;                    ///< version
  std::vector<DeviceReport> devices;     ///< in PCI order
  std::vector<std::string> unreachable;  ///< a reason for each GPU that gave no handle
  std::vector<NumaCpus> numa_cpus;       ///< of the NUMA nodes that have GPUs
  std::vector<DeviceNodes> gpu_nodes{};  ///< all that are of GPUs or of instances of MIG

  friend bool operator==(const Report&, const Report&) = default;
};

/// One line of JSON without the line end: what gflow-gpumon answers.
[[nodiscard]] std::string to_line(const Report& report);
/// Errors: Code::Failure for anything that to_line() does not write.
[[nodiscard]] Result<Report> from_line(std::string_view line);

}  // namespace gflow::devices::nvml
