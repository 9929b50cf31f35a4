// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "core/job.h"
#include "core/job_sight.h"
#include "core/status.h"

namespace gflow {

/// What listed jobs are ordered by.
enum class JobKey { Id, State, Time, Name, Gpus, Priority };

/// Jobs of equal keys are by ascending id, also where keys descend.
struct JobOrder {
  JobKey key = JobKey::Id;
  bool descending = false;
  bool reversed = false;  ///< from the other end, for the last ones of an order: equal keys, too

  friend bool operator==(const JobOrder&, const JobOrder&) = default;
};
/// "id, state, time, ...", as people type them.
[[nodiscard]] std::string job_keys();
/// What a key looks at, as in JobQuery::fields.
[[nodiscard]] std::string_view field_of(JobKey key);
/// Both as people type them: "priority", "-priority". Errors: Usage.
[[nodiscard]] Result<JobOrder> parse_job_order(std::string_view text);
[[nodiscard]] std::string job_order_text(const JobOrder& order);

/// Which jobs are asked for. Empty fields ask for everything.
struct JobQuery {
  static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

  StatusSet statuses;
  std::vector<std::string> users;
  std::vector<std::string> names;  ///< exact, or with * and ?
  std::string project;
  std::string group;
  std::vector<JobId> jobs;  ///< ascending
  std::optional<WallTime> submitted_since;
  JobId after;  ///< only ids above it, or below where newer jobs come first
  /// Where a page in another order than by id ended: JobPage::next. It goes on there.
  std::string cursor;
  std::size_t most = kAll;  ///< jobs in the answer
  JobOrder order;           ///< of the engine's lists, only by id
  /// What is shown of each, by their names in JSON: "status", "spec.name"; empty: everything. The
  /// id always is.
  std::vector<std::string> fields;
  /// Of whoever asks: jobs they do not know of match nothing, and names only what they are shown.
  JobSight sight;

  [[nodiscard]] bool newest_first() const {
    return order.key == JobKey::Id && order.descending != order.reversed;
  }

  friend bool operator==(const JobQuery&, const JobQuery&) = default;
};

}  // namespace gflow
