// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "command/command.h"

namespace gflow::kube {

/// Those that say which cluster, and who asks: AccessWish.
[[nodiscard]] std::vector<cli::Option> access_options();
/// gflow-kube: the scheduler of a cluster.
[[nodiscard]] cli::Command gflow_kube_command();

}  // namespace gflow::kube
