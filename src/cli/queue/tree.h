// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "api/types.h"

namespace gflow::cli {

/// One line of the tree of dependencies.
struct TreeLine {
  std::string prefix = {};       ///< "│ ╰─", before the id
  const api::JobView* job = {};  ///< shown in full, or
  bool elsewhere = false;        ///< only pointed at: it hangs under an earlier line already
};

/// Jobs under the jobs they depend on, children by id. Jobs whose parents are not among those given
/// are roots. A job with several parents is shown under the first and pointed at under the others.
[[nodiscard]] std::vector<TreeLine> dependency_tree(const std::vector<api::JobView>& jobs);

}  // namespace gflow::cli
