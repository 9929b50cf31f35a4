// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace gflow::kube {

/// What is made of pods before they are there.
struct AdmissionRules {
  std::string scheduler = "gflow";  ///< schedulerName of who knows the annotation gflow/gpu
  /// The nodes have gflow-device-plugin: a pod that asks by the annotation alone asks for
  /// gflow/allocation, too.
  bool allocations = false;
};

/// The answer of a webhook: an AdmissionReview (admission.k8s.io/v1) to one. A new pod that asks by
/// the annotation is the scheduler's unless another one or a node was chosen; one of its pods none
/// of whose containers names a resource of GPUs has the first ask for gflow/allocation, if these
/// are given out. Nothing is refused; of a request that makes no sense it warns. What is no new pod
/// stays as it is. Errors: Usage, for what is no AdmissionReview.
[[nodiscard]] Result<std::string> review(const AdmissionRules& rules, const std::string& asked);

}  // namespace gflow::kube
