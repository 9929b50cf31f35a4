// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/device_filter.h"
#include "base/memory.h"
#include "core/gpu_isolation.h"
#include "core/job_id.h"
#include "core/label.h"
#include "core/mig_gpu.h"
#include "core/topology.h"

namespace gflow {

/// A process seen on a device.
struct DeviceProcess {
  int pid = 0;
  std::string user;              ///< "" if not known
  std::string name;              ///< "" if not known
  std::optional<Memory> memory;  ///< device memory it uses
  /// Of gflow's, to which it belongs though that job does not hold the device; filled by the
  /// daemon.
  std::optional<JobId> job{};

  friend bool operator==(const DeviceProcess&, const DeviceProcess&) = default;
};

/// Device memory that the processes of one gflow job use which holds the device.
struct JobUse {
  std::uint64_t job = 0;         ///< number of the job
  std::optional<Memory> memory;  ///< empty: the source does not tell

  friend bool operator==(const JobUse&, const JobUse&) = default;
};

/// What a MIG device is: the slice of a GPU that a compute instance in a GPU instance is.
struct MigDevice {
  std::string parent;   ///< UUID of the GPU it is cut from; "" and 0 of one that is gone
  std::string profile;  ///< "1g.10gb"
  int gpu_instance = 0;
  int compute_instance = 0;

  friend bool operator==(const MigDevice&, const MigDevice&) = default;
};

/// One GPU, or one MIG device of a GPU, as its source reports it. A reading that is missing is not
/// zero.
struct Device {
  int index = 0;            ///< in PCI bus order, as CUDA_DEVICE_ORDER=PCI_BUS_ID counts
  std::string vendor;       ///< "nvidia", "amd", "intel", "ascend"
  std::string model;        ///< as the driver reports it: "NVIDIA GeForce RTX 3090"
  std::string uuid;         ///< of a MIG device "MIG-..."
  std::string pci_address;  ///< "0000:3b:00.0", "" if not known
  std::optional<int> numa_node;
  std::optional<Memory> memory_total;
  std::optional<Memory> memory_used;
  std::optional<int> utilization_percent;  ///< time any kernel ran, 0..100
  std::optional<int> temperature_celsius;
  std::optional<int> power_milliwatts;
  std::optional<int> power_limit_milliwatts;
  std::vector<DeviceProcess> processes;  ///< all of them; whose they are is decided by the daemon
  std::vector<JobUse> uses;              ///< by jobs of gflow, by number; filled by the daemon
  /// Why a reading above is missing or the device cannot be used; "" if all is well.
  std::string trouble;
  bool usable = true;  ///< false: never handed out (fallen off the bus, lost)
  /// Of a MIG device; empty for a GPU. Address, NUMA node and temperature are those of its GPU,
  /// which is no device beside it; utilization and power are told of GPUs alone, and are no
  /// trouble.
  std::optional<MigDevice> mig{};
  /// The device nodes that who uses it has to open and nobody else has; those of a MIG device are
  /// partly its GPU's. Empty if not known.
  std::vector<DeviceNodes> nodes{};

  friend bool operator==(const Device&, const Device&) = default;
};

/// A device, or a whole node, that an administrator lets nothing new start on.
struct Drain {
  std::string node;        ///< its name
  std::optional<int> gpu;  ///< empty: the whole node, or a GPU that is cut and so has no index
  std::string reason;
  std::string by;      ///< who asked for it
  std::string uuid{};  ///< of the device, which may come to have another index; "" if not known

  [[nodiscard]] bool is_of_node() const { return !gpu && uuid.empty(); }

  friend bool operator==(const Drain&, const Drain&) = default;
};

/// As people are told of it: "drained: its fan is loud".
[[nodiscard]] std::string drained_text(std::string_view reason);

/// A node as it describes itself.
struct Machine {
  std::string name;              ///< unique among nodes; is_node_name()
  std::vector<Label> labels;     ///< sorted
  std::string source;            ///< "nvml", "sim:8xH100" or "none"
  std::string note;              ///< why there are no devices, or what is wrong; for people
  std::string driver;            ///< driver version, "" if not known
  std::optional<int> cpus;       ///< set only by a simulated machine; else the host's are used
  std::optional<Memory> memory;  ///< the same
  std::vector<Device> devices;   ///< by index
  Topology topology;             ///< of the devices, by index; empty if not known
  bool parks = false;            ///< the GPU memory of suspended jobs can be taken to host memory
  std::string cannot_move{};  ///< why jobs cannot move to another GPU though it parks; "": they can
  /// By vendor, the device nodes that are of its GPUs, whether a device is listed that has them or
  /// not.
  std::map<std::string, std::vector<DeviceNodes>, std::less<>> gpu_nodes{};
  GpuIsolation isolation = GpuIsolation::None;  ///< how jobs are kept from GPUs of others here
  /// GPUs with MIG enabled, and what they are cut into. Those without a slice are among `devices`.
  std::vector<MigGpu> mig_gpus{};

  friend bool operator==(const Machine&, const Machine&) = default;
};

/// Whether devices with processes that are not gflow's are given out to jobs.
enum class OtherUse { Barred, Shared };

/// Why nothing new may start on a device, the first that holds.
enum class DeviceBar {
  None,     ///< it may be given out
  Broken,   ///< Device::trouble says what is wrong
  Drained,  ///< by an administrator
  InUse,    ///< by processes that are not gflow's, or of jobs that do not hold it
};
[[nodiscard]] constexpr std::string_view device_bar_name(DeviceBar bar) {
  switch (bar) {
    case DeviceBar::None:
      return "none";
    case DeviceBar::Broken:
      return "broken";
    case DeviceBar::Drained:
      return "drained";
    case DeviceBar::InUse:
      return "in_use";
  }
  return "unknown";
}

/// What takes a whole node out of use, or one device of it; null if nothing does. A device is known
/// again by its UUID, by its index where there is none.
[[nodiscard]] const Drain* drain_of_node(const std::vector<Drain>& drains, std::string_view node);
[[nodiscard]] const Drain* drain_of_device(const std::vector<Drain>& drains,
                                           std::string_view node,
                                           const Device& device);
/// The drain of a GPU that is cut; null if there is none.
[[nodiscard]] const Drain* drain_of_cut_gpu(const std::vector<Drain>& drains,
                                            std::string_view node,
                                            std::string_view uuid);
/// Whether it is of just this device, not of the GPU that it is cut from.
[[nodiscard]] bool is_of_device(const Drain& drain, const Device& device);
/// Whether a GPU of that UUID is cut, or may be: it is no device, and its slices are.
[[nodiscard]] bool is_cut_gpu(const Machine& machine, std::string_view uuid);
/// Whether what is drained is there: the node, or the device on it, also one that is cut.
[[nodiscard]] bool is_present(const Drain& drain, const Machine& machine);
/// May this device be given out? `drain` is what takes it out, or null; its processes are those
/// that are not of jobs that hold it.
[[nodiscard]] DeviceBar bar_of(const Device& device, const Drain* drain, OtherUse use);

/// Whether a node may be called so: 1 to 64 letters, digits, '.', '-' and '_', so that a name can
/// stand before a colon and in a list.
[[nodiscard]] bool is_node_name(std::string_view name);
/// The order nodes are considered in, which must not depend on when they came: by name, numbers in
/// it by their value, so that node2 comes before node10.
[[nodiscard]] bool node_name_less(std::string_view a, std::string_view b);
/// The name of a machine whose host name this is: up to the first dot, "localhost" where that is
/// none a node may have.
[[nodiscard]] std::string node_name_of(std::string_view host);

}  // namespace gflow
