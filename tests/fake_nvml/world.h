// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cuda/nvml_abi.h"
#include "devices/sim/machine_file.h"

namespace fake_nvml {

namespace abi = gflow::cuda::nvml;
using gflow::devices::sim::SimDevice;
using gflow::devices::sim::SimSlice;

/// The machine this library plays.
class World {
 public:
  /// Reads the file of $GFLOW_FAKE_NVML again; kDriverNotLoaded if there is none or it is wrong.
  [[nodiscard]] abi::Return load();
  [[nodiscard]] const gflow::devices::sim::SimMachine& machine() const { return machine_; }
  /// What the file wants the call to do: comes back, if at all, with kSuccess or a code to return.
  [[nodiscard]] abi::Return entering(std::string_view call) const;
  /// A GPU or a MIG device of it.
  struct Target {
    const SimDevice* device = nullptr;  ///< null if there is none
    const SimSlice* slice = nullptr;
  };
  [[nodiscard]] Target target(abi::Handle handle) const;
  [[nodiscard]] abi::Handle handle_of(std::size_t index) const;
  /// Stale once any MIG device was created or destroyed.
  [[nodiscard]] abi::Handle handle_of(const SimDevice& device, std::size_t slice) const;

 private:
  gflow::devices::sim::SimMachine machine_;
  std::uintptr_t generation_ = 0;  ///< of handles of MIG devices
};

/// The one machine of this process: a C interface without a context leaves no other place for it.
[[nodiscard]] World& world();

/// What a call about a device begins with: the device if the call is to be answered, else the code.
struct Entry {
  abi::Return code = abi::kSuccess;
  const SimDevice* device = nullptr;
  const SimSlice* slice = nullptr;  ///< of it, for the handle of a MIG device
};
/// A call that MIG devices have as well as GPUs. `reading` is the name of missing.h the call
/// belongs to, "" if it is always supported.
[[nodiscard]] Entry enter_any(std::string_view call, abi::Handle handle, std::string_view reading);
/// One that only GPUs have: kNotSupported for a MIG device.
[[nodiscard]] Entry enter(std::string_view call, abi::Handle handle, std::string_view reading);

/// The PCI address as NVML writes it: "00000000:3B:00.0".
[[nodiscard]] std::string bus_id_of(const SimDevice& device);

}  // namespace fake_nvml
