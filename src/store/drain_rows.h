// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <SQLiteCpp/Database.h>

#include <vector>

#include "core/machine.h"

/// The table drains. Both throw SQLite::Exception.
namespace gflow::store {

/// All of them, in their order.
[[nodiscard]] std::vector<Drain> read_drain_rows(SQLite::Database& database);
/// These instead of those there are; to be called in a transaction.
void write_drain_rows(SQLite::Database& database, const std::vector<Drain>& drains);

}  // namespace gflow::store
