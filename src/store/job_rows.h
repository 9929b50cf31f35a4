// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <SQLiteCpp/Database.h>

#include <optional>
#include <string>

#include "core/job_range.h"
#include "store/query.h"

namespace gflow::store {

/// Rows of the table jobs by ascending id, each with what it depends on. Throws SQLite::Exception.
class JobRows {
 public:
  /// `sql`: load_waiting_sql() or load_others_sql().
  JobRows(SQLite::Database& database, const std::string& sql);

  /// On to the next one; false behind the last one.
  [[nodiscard]] bool step() { return jobs_.step(); }
  [[nodiscard]] JobRange read();

 private:
  void read_dependency();

  Statement all_jobs_;
  Statement all_dependencies_;
  Query jobs_;
  Query dependencies_;
  std::optional<JobId> job_;  ///< the one whose dependency is read next
};

}  // namespace gflow::store
