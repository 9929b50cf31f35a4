// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "command/command.h"
#include "command/context.h"
#include "deviceplugin/container_files.h"
#include "kube/access.h"

namespace gflow::deviceplugin {

/// What a program that runs on each node is told.
struct NodeOptions {
  kube::AccessWish access;
  std::string node;              ///< as the cluster calls this machine
  std::string devices = "auto";  ///< as gflowd --devices
  Places places;
};

/// The options of its command; `usual`: where it has what unless it is told.
[[nodiscard]] std::vector<cli::Option> node_options(const Places& usual);
/// Errors: Usage.
[[nodiscard]] Result<NodeOptions> read_node_options(const cli::Invocation& typed, Places usual);

}  // namespace gflow::deviceplugin
