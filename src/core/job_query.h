// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "core/job.h"
#include "core/status.h"

namespace gflow {

/// Which jobs are asked for, by ascending id. Empty fields ask for everything.
struct JobQuery {
  static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

  StatusSet statuses;
  std::vector<std::string> users;
  std::vector<std::string> names;  ///< exact, or with * and ?
  std::string project;
  std::string group;
  std::vector<JobId> jobs;  ///< ascending
  std::optional<WallTime> submitted_since;
  JobId after;              ///< only ids above it
  std::size_t most = kAll;  ///< jobs in the answer

  friend bool operator==(const JobQuery&, const JobQuery&) = default;
};

}  // namespace gflow
