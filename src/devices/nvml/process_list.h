// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "cuda/nvml_abi.h"
#include "devices/nvml/library.h"

namespace gflow::devices::nvml {

/// The processes of a GPU, from whichever of the three versions of the call this driver has.
class ProcessList {
 public:
  struct Answer {
    abi::Return code = abi::kSuccess;
    std::vector<abi::Process> processes;
  };
  /// `call` is the name without version: "nvmlDeviceGetComputeRunningProcesses".
  [[nodiscard]] Answer read(const Library& library, abi::Handle device, const std::string& call);

 private:
  struct Version {
    const char* suffix;
    std::size_t guess;                 ///< bytes of an entry by the documented layout
    std::optional<std::size_t> bytes;  ///< as found out from a first answer
  };
  struct Raw {
    abi::Return code = abi::kSuccess;
    std::size_t count = 0;
    std::vector<std::byte> buffer;
  };
  [[nodiscard]] static Raw ask(const Library& library,
                               abi::Handle device,
                               const std::string& call,
                               std::byte fill);

  std::array<Version, 3> versions_ = {{{"_v3", 24, {}}, {"_v2", 24, {}}, {"", 16, {}}}};
};

}  // namespace gflow::devices::nvml
