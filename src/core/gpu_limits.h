// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gflow {

/// By what means a job is held to its part of a GPU.
enum class GpuLimit {
  None,        ///< it is reserved for the job, and the job is not held to it
  Interposer,  ///< libgflow-share.so, which programs of the job load: docs/sharing.md
};

/// Of an attempt that shares a GPU.
struct GpuLimits {
  GpuLimit memory = GpuLimit::None;
  GpuLimit compute = GpuLimit::None;

  friend bool operator==(const GpuLimits&, const GpuLimits&) = default;
};

[[nodiscard]] constexpr std::string_view gpu_limit_name(GpuLimit limit) {
  switch (limit) {
    case GpuLimit::None:
      return "none";
    case GpuLimit::Interposer:
      return "interposer";
  }
  return "unknown";
}

}  // namespace gflow
