// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "base/listen_address.h"
#include "base/result.h"
#include "kube/access.h"

namespace gflow::kube {

struct ServeOptions {
  AccessWish access;
  std::string name = "gflow";               ///< schedulerName of the pods that are shown
  std::string name_space = "gflow-system";  ///< of the ConfigMap of their limits
  std::string image;                        ///< of jobs that name none; "": they have to
  std::vector<ListenAddress> loopback;      ///< where it listens; or:
  bool has_channel = false;                 ///< its stdin gives it connections (client/cluster.h)
};

/// Answers about a cluster as gflowd does about its machine: reads it with the rights of who runs
/// this, follows it, and changes nothing there but what is submitted and cancelled. Until a signal,
/// or the end of the channel. Errors: NotFound and Usage of a kubeconfig; Permission and
/// Unreachable of a cluster that cannot be read.
[[nodiscard]] Result<void> serve_api(const ServeOptions& options, std::ostream& out);

}  // namespace gflow::kube
