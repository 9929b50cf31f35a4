// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <SQLiteCpp/Database.h>

#include <vector>

#include "core/node_health.h"

/// The table node_health. Both throw SQLite::Exception.
namespace gflow::store {

/// All of them, by node.
[[nodiscard]] std::vector<NodeHealth> read_health_rows(SQLite::Database& database);
/// These instead of those there are; to be called in a transaction.
void write_health_rows(SQLite::Database& database, const std::vector<NodeHealth>& unhealthy);

}  // namespace gflow::store
