// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "api/types.h"

namespace gflow::cli {

/// For how long a job has left its GPUs idle, where that is so long that it is told unasked: 0
/// else.
[[nodiscard]] inline std::chrono::seconds long_idle(const api::JobView& job) {
  constexpr std::chrono::minutes kShown{10};
  return job.gpu_idle && *job.gpu_idle >= kShown ? *job.gpu_idle : std::chrono::seconds(0);
}

}  // namespace gflow::cli
