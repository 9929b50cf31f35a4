// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gflow {

/// In the environment of a job of a cluster: the image of its container; in that of who serves the
/// cluster: of jobs that say none.
constexpr const char* kImageVariable = "GFLOW_KUBE_IMAGE";

}  // namespace gflow
