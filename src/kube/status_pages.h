// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kube/status_server.h"

namespace gflow::kube {

class Health;
class Metrics;

/// 200, or 503 with what is wrong.
[[nodiscard]] Page verdict(const std::string& trouble);

/// What a kubelet and Prometheus ask: /healthz (to be restarted where it is not 200), /readyz and
/// /metrics. REQUIRES: both outlive them.
[[nodiscard]] Pages status_pages(const Health& health, const Metrics& metrics);

}  // namespace gflow::kube
