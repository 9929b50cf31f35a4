// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "cuda/nvml_abi.h"

namespace gflow::devices::nvml {

namespace abi = gflow::cuda::nvml;

/// NVIDIA's management library, loaded and never unloaded (its threads may outlive any call).
/// Calls may block for ever or end the process: only gflow-gpumon and gflow-park use this.
class Library {
 public:
  /// Looks where drivers and containers put it; `path`, if not "", is the only place.
  /// Errors: NotFound if it is not installed, Failure if it is there and does not load.
  static Result<Library> open(const std::string& path);

  /// Calls a function by its exported name; kFunctionNotFound if this driver has none of it.
  template <typename Function, typename... Arguments>
  [[nodiscard]] abi::Return call(const char* name, Arguments... arguments) const {
    const auto function = reinterpret_cast<Function>(symbol(name));
    return function == nullptr ? abi::kFunctionNotFound : function(arguments...);
  }

  /// What the driver calls a return code: "Not Supported".
  [[nodiscard]] std::string error_text(abi::Return code) const;

 private:
  explicit Library(void* library) : library_(library) {}
  [[nodiscard]] void* symbol(const char* name) const;

  void* library_;
};

}  // namespace gflow::devices::nvml
