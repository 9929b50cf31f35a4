// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/job_query.h"
#include "server/top_jobs.h"

namespace gflow::server {

/// Where a page of sorted jobs ended.
struct JobCursor {
  JobKey key = JobKey::Priority;
  SortPlace place;
  std::chrono::milliseconds as_of{0};  ///< State::lived() of the first page
};
[[nodiscard]] std::string write_job_cursor(const JobCursor& cursor);
/// Errors: Usage for one that is of another order.
[[nodiscard]] Result<JobCursor> read_job_cursor(std::string_view text, JobKey key);

}  // namespace gflow::server
