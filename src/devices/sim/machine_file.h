// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/machine.h"

namespace gflow::devices::sim {

/// Compute processes keep others off a device; graphics ones (a desktop) do not.
enum class ProcessKind { Compute, Graphics };

struct SimProcess {
  DeviceProcess process;
  ProcessKind kind = ProcessKind::Compute;
};

enum class DeviceState {
  Ok,
  Lost,  ///< fallen off the bus: the driver knows it was there and nothing more
  Mig,   ///< MIG is enabled
};

/// A MIG device of a GPU.
struct SimSlice {
  std::string uuid;
  MigDevice mig;  ///< its parent is set once that has its UUID
  Memory memory_total{};
  Memory memory_used{};
  std::vector<SimProcess> processes;
};

struct SimDevice {
  Device device;  ///< every reading it has; processes and trouble are left to machine_of()
  DeviceState state = DeviceState::Ok;
  std::vector<SimProcess> processes;
  std::vector<SimSlice> slices;          ///< in the order of their instances
  MigGpu mig;                            ///< where MIG is enabled: what it can be cut into, and is
  std::vector<std::string> unsupported;  ///< names of missing.h
};

/// What a call of the simulated driver library does instead of answering.
struct CallFault {
  enum class Kind { Hang, Abort, Fail };
  std::string call;  ///< "nvmlDeviceGetTemperature"
  Kind kind = Kind::Fail;
  int code = 0;  ///< returned, for Fail
};

/// What only a simulated NVML library looks at.
struct NvmlBehaviour {
  std::vector<CallFault> faults;
  int process_entry_bytes = 24;  ///< 16, 24 or 32: drivers differ under one symbol
};

/// A simulated machine.
struct SimMachine {
  std::string name;  ///< of the node; "" is the host's
  std::string driver;
  std::optional<int> cpus;
  std::optional<Memory> memory;
  std::vector<SimDevice> devices;  ///< in PCI order, by index
  Topology topology;               ///< of the devices
  NvmlBehaviour nvml;
};

constexpr int kMaxDevices = 256;
constexpr int kMaxProcesses = 4096;  ///< of one device

/// Reads a machine file; see docs/format/machine.md. Errors: Code::Usage with "FILE:LINE: KEY:
/// ...".
[[nodiscard]] Result<SimMachine> read_machine(const std::string& text, const std::string& file);

/// "8xH100", "2xRTX3090+1xA100", "H100": 16 CPUs and 128 GiB of memory for each GPU.
/// Errors: Code::Usage for an unknown model, with those there are, and for more than kMaxDevices.
[[nodiscard]] Result<SimMachine> machine_of_models(std::string_view text);

/// The machine as a source shows it.
[[nodiscard]] Machine machine_of(const SimMachine& simulated, const std::string& source);

}  // namespace gflow::devices::sim
