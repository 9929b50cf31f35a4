// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "kube/api.h"
#include "kube/scheduler.h"

/// Binding a pod, of which an answer that does not come says nothing.
namespace gflow::kube {

/// "/api/v1/namespaces/NAMESPACE/pods/NAME"
[[nodiscard]] std::string pod_path(const std::string& name_space, const std::string& name);

/// Asks for it once.
[[nodiscard]] Result<Answer> ask_to_bind(Api& api,
                                         const Bind& bind,
                                         std::chrono::milliseconds limit);

/// Where a pod is that was to be bound.
enum class Standing {
  There,
  Waits,      ///< on no node, and a binding that was asked for may come still
  Elsewhere,  ///< never to be there
  Unknown,    ///< nobody says
};
/// After such an answer; where that does not say, the pod is asked. A conflict may be with an
/// earlier try of this very binding.
[[nodiscard]] Standing standing_after(Api& api, const Bind& bind, const Result<Answer>& answer);

}  // namespace gflow::kube
