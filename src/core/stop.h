// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/job.h"

namespace gflow {

/// Why a job that holds resources was told to stop; null if it was not. Part of the job.
[[nodiscard]] const Stop* stop_of(const Job& job);

}  // namespace gflow
