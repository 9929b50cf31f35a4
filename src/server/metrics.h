// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "server/service.h"

namespace gflow::server {

/// GET /metrics in the text format of Prometheus, 0.0.4. Names and units follow its rules
/// (prometheus.io/docs/practices/naming): base units, ratios from 0 to 1, and no series where a
/// value is not known. Labels are of this machine and its GPUs, never of jobs or people: as many
/// series as there are GPUs, whatever is queued. docs/metrics.md lists them.
[[nodiscard]] std::string metrics_text(const Service& service);

}  // namespace gflow::server
