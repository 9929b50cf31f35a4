// SPDX-License-Identifier: Apache-2.0
#include "store/health_rows.h"

#include "store/columns.h"
#include "store/query.h"

namespace gflow::store {

std::vector<NodeHealth> read_health_rows(SQLite::Database& database) {
  std::vector<NodeHealth> unhealthy;
  Statement all(database,
                "SELECT node, reason, failures, retry_at_lived_ms, trial, tried FROM node_health "
                "ORDER BY node");
  Query query(all);
  while (query.step()) {
    NodeHealth& health = unhealthy.emplace_back();
    health.node = query.text();
    health.reason = query.text();
    health.failures = query.as<int>();
    health.retry_at = std::chrono::milliseconds(query.integer());
    if (const auto trial = query.optional<std::uint64_t>()) health.trial = JobId(*trial);
    const std::vector<JobId> tried = read_jobs_text(query.text());
    health.tried.insert(tried.begin(), tried.end());
  }
  return unhealthy;
}

void write_health_rows(SQLite::Database& database, const std::vector<NodeHealth>& unhealthy) {
  database.exec("DELETE FROM node_health");
  Statement add(database,
                "INSERT INTO node_health (node, reason, failures, retry_at_lived_ms, trial, tried) "
                "VALUES (?, ?, ?, ?, ?, ?)");
  for (const NodeHealth& health : unhealthy) {
    Query query(add);
    query.text(health.node).text(health.reason).integer(health.failures);
    query.integer(health.retry_at.count());
    if (health.trial) {
      query.integer(static_cast<std::int64_t>(health.trial->value));
    } else {
      query.null();
    }
    query.text(jobs_text({health.tried.begin(), health.tried.end()})).run();
  }
}

}  // namespace gflow::store
