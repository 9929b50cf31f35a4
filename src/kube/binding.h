// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
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

/// That it was done, for a log.
[[nodiscard]] std::string bound_text(const Bind& bind);

/// Where a pod is that was to be bound.
enum class Standing {
  There,
  Waits,      ///< on no node, and a binding that was asked for may come still
  Elsewhere,  ///< never to be there: it is gone, or its binding is refused
  Runs,       ///< on another node, or with other GPUs of this one
  Unknown,    ///< nobody says
};
/// As the pod says.
[[nodiscard]] Standing standing_of(Api& api, const Bind& bind);
/// Tries of one binding so far.
struct BindTries {
  /// Until when one may be carried out that was sent, and neither done nor refused.
  std::optional<MonoTime> may_come{};
};
/// After such an answer to one more; where that does not say, the pod is asked. A conflict may be
/// with an earlier try of this very binding, and what is refused now may have been taken before.
[[nodiscard]] Standing standing_after(Api& api,
                                      const Bind& bind,
                                      const Result<Answer>& answer,
                                      BindTries& tries);

}  // namespace gflow::kube
