// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "devices/nvml/library.h"
#include "devices/nvml/peers.h"
#include "devices/nvml/process_list.h"
#include "devices/nvml/report.h"

namespace gflow::devices::nvml {

/// Reads all GPUs through NVML. Initialises the library at the first reading and again after an
/// error that concerns it as a whole (the driver was unloaded or replaced). May block for ever.
class Sampler {
 public:
  Sampler(Library library, std::string sysfs) : library_(library), sysfs_(std::move(sysfs)) {}

  [[nodiscard]] Report read();

 private:
  [[nodiscard]] Report failed(abi::Return code);
  [[nodiscard]] DeviceReport read_device(abi::Handle device);
  void add_connections(const std::vector<abi::Handle>& handles, Report& report);

  Library library_;
  std::string sysfs_;
  ProcessList processes_;
  bool ready_ = false;
  std::vector<std::string> connected_;    // addresses of those that connections_ are of
  std::vector<Connections> connections_;  // links do not change while the same GPUs answer
};

}  // namespace gflow::devices::nvml
