// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>

#include "base/result.h"
#include "deviceplugin/node_options.h"

namespace gflow::deviceplugin {

/// Offers the GPUs of this machine to its kubelet, and gives each container those that gflow-kube
/// chose for its pod, until a signal ends it. Errors: of the devices, the directories, the
/// kubeconfig; all else is waited for.
[[nodiscard]] Result<void> serve(const NodeOptions& options, std::ostream& log);

}  // namespace gflow::deviceplugin
