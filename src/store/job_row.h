// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/job.h"
#include "store/query.h"

/// A job as a row of the table jobs. Its dependencies are rows of their own.
namespace gflow::store {

/// The columns of the table jobs as they are written and read, quoted, by the description of a job.
[[nodiscard]] std::vector<std::string> job_columns();
/// Writes a job, new or changed; bind with bind_job().
[[nodiscard]] std::string save_job_sql();
/// All jobs by ascending id; read with read_job().
[[nodiscard]] std::string load_jobs_sql();

void bind_job(Query& query, const Job& job);
/// The row the query is at. Throws SQLite::Exception naming the job for values that cannot be.
[[nodiscard]] Job read_job(Query& query);

}  // namespace gflow::store
