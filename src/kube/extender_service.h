// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <vector>

#include "base/listen_address.h"
#include "base/result.h"
#include "kube/access.h"

namespace gflow::kube {

struct ExtenderOptions {
  AccessWish access;
  std::vector<ListenAddress> listen;  ///< of this machine alone
};

/// Answers a kube-scheduler of this machine or this pod, by HTTP, until a signal ends it: POST
/// /filter, /prioritize and /bind, GET /healthz and /readyz. Only its own user and root are
/// answered, as whoever is may have pods bound. Errors: those of find_access(), what os::listen_tcp
/// says of an address.
[[nodiscard]] Result<void> serve_extender(const ExtenderOptions& options, std::ostream& log);

}  // namespace gflow::kube
