// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "cuda/nvml_abi.h"
#include "devices/sim/machine_file.h"

namespace fake_nvml {

namespace abi = gflow::cuda::nvml;
using gflow::devices::sim::SimDevice;

/// The machine this library plays.
class World {
 public:
  /// Reads the file of $GFLOW_FAKE_NVML again; kDriverNotLoaded if there is none or it is wrong.
  [[nodiscard]] abi::Return load();
  [[nodiscard]] const gflow::devices::sim::SimMachine& machine() const { return machine_; }
  /// What the file wants the call to do: comes back, if at all, with kSuccess or a code to return.
  [[nodiscard]] abi::Return entering(std::string_view call) const;
  /// The device of a handle; null if there is none.
  [[nodiscard]] const SimDevice* device(abi::Handle handle) const;
  [[nodiscard]] abi::Handle handle_of(std::size_t index) const;

 private:
  gflow::devices::sim::SimMachine machine_;
};

/// The one machine of this process: a C interface without a context leaves no other place for it.
[[nodiscard]] World& world();

/// What a call about a device begins with: the device if the call is to be answered, else the code.
struct Entry {
  abi::Return code = abi::kSuccess;
  const SimDevice* device = nullptr;
};
/// `reading` is the name of missing.h the call belongs to, "" if it is always supported.
[[nodiscard]] Entry enter(std::string_view call, abi::Handle handle, std::string_view reading);

/// The PCI address as NVML writes it: "00000000:3B:00.0".
[[nodiscard]] std::string bus_id_of(const SimDevice& device);

}  // namespace fake_nvml
