// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/memory.h"
#include "base/proc_text.h"
#include "base/result.h"
#include "cuda/nvml_abi.h"
#include "devices/nvml/library.h"

namespace gflow::park {

/// Memory by the UUID of its GPU, as NVML writes it.
using ByGpu = std::map<std::string, Memory>;

/// What processes have of the NVIDIA GPUs of this machine, as NVML says.
class GpuMemory {
 public:
  [[nodiscard]] static Result<GpuMemory> open();

  /// What these have of each GPU they are on, with what the driver took for them. Errors: a GPU
  /// that does not tell who is on it.
  [[nodiscard]] Result<ByGpu> used_by(const std::vector<ProcessFacts>& processes) const;
  /// Refused, with the GPU that has less room than this.
  [[nodiscard]] Result<void> check_room(const ByGpu& needed) const;
  /// Refused if one is not there, or they are not of one model and size.
  [[nodiscard]] Result<void> check_alike(const std::string& one, const std::string& other) const;

 private:
  struct Kind {
    std::string model;
    Memory memory;
  };
  [[nodiscard]] Result<Kind> kind_of(const std::string& uuid) const;
  explicit GpuMemory(devices::nvml::Library library) : library_(library) {}

  devices::nvml::Library library_;
  std::map<std::string, cuda::nvml::Handle> gpus_;
};

}  // namespace gflow::park
