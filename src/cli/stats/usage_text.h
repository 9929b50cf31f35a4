// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "api/statistics.h"
#include "base/zone.h"
#include "command/command.h"
#include "command/terminal.h"

namespace gflow::cli {

struct UsageViewer {
  WallTime now;
  Zone zone;
  std::size_t columns = 0;  ///< of the screen; 0 if it is none
  Painter paint;
};

/// What was counted and since when, a row for each user or project, most GPU time first, and the
/// totals. In a pipe: the rows alone, or where there are none the totals.
[[nodiscard]] std::string usage_text(const api::StatisticsView& statistics,
                                     const UsageViewer& viewer);
[[nodiscard]] std::vector<Example> usage_legend();

}  // namespace gflow::cli
