// SPDX-License-Identifier: Apache-2.0
#include "store/array_rows.h"

#include <SQLiteCpp/Exception.h>
#include <fmt/format.h>

#include <utility>

#include "core/task_payload.h"
#include "store/payload_row.h"

namespace gflow::store {

ArrayRows::ArrayRows(SQLite::Database& database)
    : add_(database,
           "INSERT INTO arrays (first, count, first_task, step, shared) VALUES (?, ?, ?, ?, ?)"),
      find_(database,
            "SELECT first, count, first_task, step, shared FROM arrays WHERE first <= ? "
            "ORDER BY first DESC LIMIT 1"),
      find_left_(database,
                 "SELECT 1 FROM jobs INDEXED BY jobs_left WHERE id BETWEEN ? AND ? AND "
                 "end_reason IS NULL LIMIT 1"),
      has_ended_(database, "SELECT 1 FROM jobs WHERE id = ? AND end_reason IS NOT NULL"),
      find_shared_(database, kFindSharedSql),
      remove_(database, "DELETE FROM arrays WHERE first = ?") {}

void ArrayRows::add(JobId first, const TaskRange& tasks, std::int64_t shared) {
  Query query(add_);
  query.integer(static_cast<std::int64_t>(first.value));
  query.integer(static_cast<std::int64_t>(tasks.count));
  query.integer(static_cast<std::int64_t>(tasks.first));
  query.integer(static_cast<std::int64_t>(tasks.step)).integer(shared).run();
}

std::optional<ArrayRows::Row> ArrayRows::find(JobId job) {
  Query query(find_);
  if (!query.integer(static_cast<std::int64_t>(job.value)).step()) return std::nullopt;
  Row row;
  row.first = JobId(query.as<std::uint64_t>());
  row.tasks.count = query.as<std::uint64_t>();
  row.tasks.first = query.as<std::uint64_t>();
  row.tasks.step = query.as<std::uint64_t>();
  row.shared = query.integer();
  if (job.value - row.first.value >= row.tasks.count) return std::nullopt;
  return row;
}

std::optional<Payload> ArrayRows::payload(JobId job) {
  const auto array = find(job);
  if (!array) return std::nullopt;
  if (Query(has_ended_).integer(static_cast<std::int64_t>(job.value)).step()) return std::nullopt;
  Query query(find_shared_);
  if (!query.integer(array->shared).step()) {
    throw SQLite::Exception("payload: what the tasks of an array share is gone");
  }
  const Payload shared = read_shared(query);
  return complete(&shared, task_payload(array->tasks.number(job.value - array->first.value)));
}

std::vector<std::int64_t> ArrayRows::remove_ended(const std::vector<JobId>& jobs) {
  std::vector<std::int64_t> shared;
  std::optional<Row> looked_at;
  for (const JobId job : jobs) {
    if (looked_at && job.value - looked_at->first.value < looked_at->tasks.count) continue;
    auto array = find(job);
    if (!array) continue;
    const auto first = static_cast<std::int64_t>(array->first.value);
    const auto count = static_cast<std::int64_t>(array->tasks.count);
    const bool is_left = Query(find_left_).integer(first).integer(first + count - 1).step();
    if (!is_left) {
      Query(remove_).integer(first).run();
      shared.push_back(array->shared);
    }
    looked_at = array;
  }
  return shared;
}

}  // namespace gflow::store
