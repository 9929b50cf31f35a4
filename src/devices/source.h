// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/machine.h"

namespace gflow::devices {

/// Where devices come from: a vendor's library, a simulated machine. One thread; never blocks.
class Source {
 public:
  virtual ~Source() = default;

  /// What is known now. Right after open_source() it is the complete first reading.
  [[nodiscard]] virtual const Machine& machine() const = 0;
  /// Readable when poll() has a new reading; -1 if there never is one.
  [[nodiscard]] virtual int fd() const { return -1; }
  /// Takes in what arrived; true if machine() changed.
  virtual bool poll() { return false; }
  /// Asks for a fresh reading, which comes through fd(). Cheap; may be called often. False: none
  /// begins now, as one of before is under way, or none can be had for a while.
  virtual bool refresh() { return true; }
  /// How long a reading stays good; zero: for ever, nothing ever changes by itself.
  [[nodiscard]] virtual std::chrono::milliseconds interval() const {
    return std::chrono::milliseconds(0);
  }
};

struct SourceOptions {
  std::string probe;  ///< absolute path of gflow-gpumon
  /// "NAME=value" for the probe besides the daemon's own environment.
  std::vector<std::string> environment = {};
  std::string pci_devices = "/sys/bus/pci/devices";  ///< where the kernel lists what is plugged in
  std::chrono::milliseconds first_answer{10'000};    ///< open_source() waits so long for a reading
  std::chrono::milliseconds deadline{5'000};         ///< a reading not there by then is a miss
};

/// "auto" (NVML if there is one, else none), "none", "nvml", "sim:8xH100", "sim:2xRTX3090+1xA100",
/// "sim:FILE.yaml". "auto" never fails: what is missing is said in Machine::note, and where a GPU
/// is plugged in, Machine::source is that of its driver, which may yet answer. Errors: Usage for a
/// specification that is not understood, with the models there are; NotFound for a file; Failure
/// for "nvml" without a driver.
[[nodiscard]] Result<std::unique_ptr<Source>> open_source(const std::string& specification,
                                                          const SourceOptions& options);

}  // namespace gflow::devices
