// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command/command.h"

namespace gflow::kube {

/// gflow-kube: the scheduler of a cluster.
[[nodiscard]] cli::Command gflow_kube_command();

}  // namespace gflow::kube
