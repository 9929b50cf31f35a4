// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/queue/fold.h"

namespace gflow::cli {

/// One line of the tree of dependencies.
struct TreeLine {
  std::string prefix = {};  ///< "│ ╰─", before the id
  FoldedJobs jobs;          ///< shown in full, or
  bool elsewhere = false;   ///< only pointed at: they hang under an earlier line already
};

/// Rows under those with jobs they depend on, children by id. Rows whose parents are not among
/// those given are roots. A row with several parents is shown under the first and pointed at under
/// the others.
[[nodiscard]] std::vector<TreeLine> dependency_tree(const std::vector<FoldedJobs>& rows);

}  // namespace gflow::cli
