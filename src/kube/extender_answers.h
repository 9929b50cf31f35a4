// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "kube/extender.h"

/// What kube-scheduler sends to an extender, and is answered (k8s.io/kube-scheduler/extender/v1):
/// documents of JSON both.
namespace gflow::kube {

/// An ExtenderFilterResult to ExtenderArgs: the nodes that have what the pod asks for, as names or
/// whole as they were sent, and why the others have not. Errors: Usage for what is none.
[[nodiscard]] Result<std::string> filter(Extender& extender,
                                         const std::string& asked,
                                         MonoTime now);

/// A HostPriorityList to ExtenderArgs. Errors: as filter().
[[nodiscard]] Result<std::string> prioritize(Extender& extender, const std::string& asked);

/// ExtenderBindingArgs.
struct BindingArgs {
  std::string uid;
  std::string name_space;
  std::string name;
  std::string node;
};
/// Errors: Usage for what is none.
[[nodiscard]] Result<BindingArgs> binding_args_of(const std::string& asked);

/// An ExtenderBindingResult; "": it is bound.
[[nodiscard]] std::string binding_result(const std::string& why_not);

}  // namespace gflow::kube
