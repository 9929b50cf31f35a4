// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <SQLiteCpp/Database.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/job_range.h"
#include "store/query.h"

namespace gflow::store {

/// The table of what the tasks of an array run: schema/0016_arrays.sql. Throws SQLite::Exception.
class ArrayRows {
 public:
  explicit ArrayRows(SQLite::Database& database);

  /// New tasks, of which the first is this job, that share this row of shared_payloads.
  void add(JobId first, const TaskRange& tasks, std::int64_t shared);
  /// What a job runs as the task of an array; nothing if it is none, or has ended.
  [[nodiscard]] std::optional<Payload> payload(JobId job);
  /// Removes the arrays these jobs are of, where all tasks have ended. Returns what they shared.
  std::vector<std::int64_t> remove_ended(const std::vector<JobId>& jobs);

 private:
  struct Row {
    JobId first;
    TaskRange tasks;
    std::int64_t shared = 0;
  };
  [[nodiscard]] std::optional<Row> find(JobId job);

  Statement add_;
  Statement find_;
  Statement find_left_;
  Statement has_ended_;
  Statement find_shared_;
  Statement remove_;
};

}  // namespace gflow::store
