// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace gflow {

/// What keeps a job from GPUs that it was not given, besides the variables that name its own.
enum class GpuIsolation : std::uint8_t {
  None,
  Filter,    ///< a device filter of its control group
  Landlock,  ///< rules that its processes took on themselves: landlock(7)
};
[[nodiscard]] constexpr std::string_view gpu_isolation_name(GpuIsolation isolation) {
  switch (isolation) {
    case GpuIsolation::None:
      return "none";
    case GpuIsolation::Filter:
      return "filter";
    case GpuIsolation::Landlock:
      return "landlock";
  }
  return "unknown";
}

}  // namespace gflow
