// SPDX-License-Identifier: Apache-2.0
#include "store/job_rows.h"

#include <cstdint>

#include "store/job_row.h"

namespace gflow::store {

JobRows::JobRows(SQLite::Database& database, const std::string& sql)
    : all_jobs_(database, sql),
      all_dependencies_(database, "SELECT job, on_job FROM dependencies ORDER BY job, on_job"),
      jobs_(all_jobs_),
      dependencies_(all_dependencies_) {
  read_dependency();
}

JobRange JobRows::read() {
  JobRange range = read_range(jobs_);
  while (job_ && *job_ < range.last()) read_dependency();
  for (; job_ == range.last(); read_dependency()) {
    range.first.spec.dependencies.jobs.emplace_back(dependencies_.as<std::uint64_t>());
  }
  return range;
}

void JobRows::read_dependency() {
  job_.reset();
  if (dependencies_.step()) job_ = JobId(dependencies_.as<std::uint64_t>());
}

}  // namespace gflow::store
