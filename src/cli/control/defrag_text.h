// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "api/defrag.h"
#include "api/types.h"

namespace gflow::cli {

/// What is known of the jobs that plans name.
struct DefragNames {
  std::map<JobId, api::JobView> jobs;
  bool has_several_nodes = false;  ///< then GPUs are named with theirs
};

/// A job a line, or with its moves below it, and what to do then.
[[nodiscard]] std::string defrag_text(const api::DefragView& view, const DefragNames& names);

}  // namespace gflow::cli
