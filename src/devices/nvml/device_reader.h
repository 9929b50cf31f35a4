// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cuda/nvml_abi.h"
#include "devices/nvml/library.h"
#include "devices/nvml/report.h"

namespace gflow::devices::nvml {

/// Empty for the amounts drivers give where they have none to tell (2^64-1 and the like).
[[nodiscard]] std::optional<Memory> memory_of(std::uint64_t bytes);

/// Reads one GPU, or one MIG device of it, call by call; a call that fails leaves its reading empty
/// and says why.
class DeviceReader {
 public:
  DeviceReader(const Library& library, abi::Handle device) : library_(library), device_(device) {}

  void identity();  ///< name, UUID, PCI address
  void memory();
  void load();        ///< utilization, temperature
  void power();       ///< draw and limit
  void partitions();  ///< MIG
  /// Takes note of a call's return code; true if it gave its answer.
  bool gave(abi::Return code, const char* reading);
  [[nodiscard]] DeviceReport& report() { return report_; }

 private:
  [[nodiscard]] std::string text(const char* call) const;
  [[nodiscard]] abi::Return temperature();

  const Library& library_;
  abi::Handle device_;
  DeviceReport report_;
};

}  // namespace gflow::devices::nvml
