// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>

#include "base/result.h"
#include "deviceplugin/node_options.h"

namespace gflow::dra {

/// Tells the cluster of the GPUs of this machine by ResourceSlices, and gives containers what was
/// allocated to the claims that they name, until a signal ends it. Errors: of the devices, the
/// directories, the kubeconfig; all else is waited for.
[[nodiscard]] Result<void> serve(const deviceplugin::NodeOptions& options, std::ostream& log);

}  // namespace gflow::dra
