// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/job_range.h"
#include "store/query.h"

/// A job, or jobs alike, as a row of the table jobs. Dependencies are rows of their own, those of
/// jobs alike once, for the last of them.
namespace gflow::store {

/// The columns of the table jobs as they are written and read, quoted, by the description of a job.
[[nodiscard]] std::vector<std::string> job_columns();
/// Writes a job, new or changed; bind with bind_job().
[[nodiscard]] std::string save_job_sql();
/// Those that wait, by ascending id; read with read_range(). SQLite decodes each column that is
/// asked for, read or not: so these are half of them.
[[nodiscard]] std::string load_waiting_sql();
/// All others, the same way.
[[nodiscard]] std::string load_others_sql();
/// The first row of this id or a higher one, which is the job's if it is there; read with
/// read_range().
[[nodiscard]] std::string find_row_sql();

void bind_job(Query& query, const Job& job);
/// `last`: the last of them, borrowed.
void bind_range(Query& query, const JobRange& range, const Job& last);
/// The row the query is at: one job, or those it stands for. Throws SQLite::Exception naming the
/// job for values that cannot be.
[[nodiscard]] JobRange read_range(Query& query);

}  // namespace gflow::store
