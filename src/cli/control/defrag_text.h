// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "api/defrag.h"
#include "api/types.h"

namespace gflow::cli {

/// What is known of the jobs that plans name.
struct DefragNames {
  std::map<JobId, api::JobView> jobs;
  bool has_several_nodes = false;  ///< then GPUs are named with theirs
  bool is_cluster = false;         ///< jobs are pods, known by namespace and name
};

/// A job a line, or with its moves below it, and what to do then.
[[nodiscard]] std::string defrag_text(const api::DefragView& view, const DefragNames& names);
/// A plan that is being carried out, and the priority its job has now, where that is known.
[[nodiscard]] std::string applied_text(const DefragPlan& plan,
                                       std::optional<int> priority,
                                       const DefragNames& names);
/// Why there is nothing to be carried out of a plan; "" where there is.
[[nodiscard]] std::string why_not_applied(const DefragPlan& plan, const DefragNames& names);

}  // namespace gflow::cli
