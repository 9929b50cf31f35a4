// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command/command.h"

namespace gflow::deviceplugin {

/// gflow-device-plugin: gives containers of a node the GPUs that gflow-kube chose for them.
[[nodiscard]] cli::Command device_plugin_command();

}  // namespace gflow::deviceplugin
