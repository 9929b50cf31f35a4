// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "core/job_query.h"
#include "server/top_jobs.h"

namespace gflow::server {

/// Where a page of sorted jobs ended.
struct JobCursor {
  JobKey key = JobKey::Priority;
  SortPlace place;
  WallTime as_of;  ///< of the first page
};
[[nodiscard]] std::string write_job_cursor(const JobCursor& cursor);
/// Errors: Usage for one that is of another order.
[[nodiscard]] Result<JobCursor> read_job_cursor(std::string_view text, JobKey key);

}  // namespace gflow::server
