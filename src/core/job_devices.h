// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/device_filter.h"
#include "core/job.h"
#include "core/machine.h"

namespace gflow {

/// What keeps the processes of an attempt, a running one, from GPUs that it was not given. Empty if
/// nothing does: nothing can here, it is to see all of them, or no device nodes are known. Where
/// the nodes of one of its own are not known, those of the same vendor stay open to it.
[[nodiscard]] std::optional<DeviceFilter> device_filter_of(const Job& job,
                                                           const Attempt& attempt,
                                                           const Machine& machine);

/// The devices whose jobs are not kept from others because their nodes are not known: "0,2-3"; ""
/// if there are none, or no job is kept from any.
[[nodiscard]] std::string gpus_without_nodes(const Machine& machine);

}  // namespace gflow
