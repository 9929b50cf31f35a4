// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "server/facade.h"

namespace gflow::kube {

/// What of gflow is done about a cluster by others: to show what there is, to submit, cancel, hold
/// and release is done here.
[[nodiscard]] std::span<const server::Elsewhere> elsewhere_of_cluster();

}  // namespace gflow::kube
