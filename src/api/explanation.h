// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/expected_start.h"
#include "api/types.h"
#include "base/result.h"
#include "core/job_changes.h"

namespace gflow::api {

/// What the one who asks could do so that a job starts sooner.
struct Suggestion {
  std::string action;   ///< "update" with `changes`, "release" or "resume"
  JobChanges changes;   ///< the body of PATCH /api/v1/jobs/{id}
  std::string command;  ///< the same as typed: "gjob update 42 --gpus 1"
  std::string text;     ///< what comes of it: "as many as are free now"
};

/// The answer to GET /api/v1/jobs/{id}/explain: why a job waits, by its blockers, until when, and
/// what would change that.
struct Explanation {
  JobView job;
  std::optional<std::string> told;  ///< what the scheduler of a cluster says of it; empty of gflowd
  std::optional<ExpectedStart> expected_start;
  std::vector<Suggestion> suggestions;  ///< only what the one who asks may do
};

/// What the one who asks may do about a job, so that nothing else is advised.
struct Asker {
  bool may_change = true;           ///< its owner, or an operator
  int max_priority = kMaxPriority;  ///< the highest they may give it
  std::optional<int> ahead = {};    ///< the priority of the job it stands behind, if it is known
  bool could_borrow = false;        ///< an idle GPU, if it gave it back when asked
};
[[nodiscard]] std::vector<Suggestion> suggestions_for(const JobView& job, const Asker& asker);

[[nodiscard]] std::string write(const Explanation& explanation);
[[nodiscard]] Result<Explanation> read_explanation(std::string_view json);

}  // namespace gflow::api
