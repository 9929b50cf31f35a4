// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>

#include "base/result.h"
#include "deviceplugin/container_files.h"
#include "kube/access.h"

namespace gflow::deviceplugin {

struct Options {
  kube::AccessWish access;
  std::string node;              ///< as the cluster calls this machine
  std::string devices = "auto";  ///< as gflowd --devices
  Places places;
};

/// Offers the GPUs of this machine to its kubelet, and gives each container those that gflow-kube
/// chose for its pod, until a signal ends it. Errors: of the devices, the directories, the
/// kubeconfig; all else is waited for.
[[nodiscard]] Result<void> serve(const Options& options, std::ostream& log);

}  // namespace gflow::deviceplugin
