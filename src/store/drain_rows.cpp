// SPDX-License-Identifier: Apache-2.0
#include "store/drain_rows.h"

#include <fmt/format.h>

#include <string>

#include "base/text.h"
#include "core/machine_description.h"
#include "store/columns.h"
#include "store/query.h"

namespace gflow::store {

std::vector<Drain> read_drain_rows(SQLite::Database& database) {
  std::vector<Drain> drains;
  std::vector<std::string> columns;
  add_columns<Drain>(columns);
  Statement all(database,
                fmt::format("SELECT {} FROM drains ORDER BY position", join(columns, ", ")));
  Query query(all);
  while (query.step()) read_columns(query, drains.emplace_back());
  return drains;
}

void write_drain_rows(SQLite::Database& database, const std::vector<Drain>& drains) {
  database.exec("DELETE FROM drains");
  std::vector<std::string> columns;
  add_columns<Drain>(columns);
  const std::vector<std::string> values(columns.size(), "?");
  Statement add(
      database,
      fmt::format("INSERT INTO drains ({}) VALUES ({})", join(columns, ", "), join(values, ", ")));
  for (const Drain& drain : drains) {
    Query query(add);
    bind_columns(query, drain);
    query.run();
  }
}

}  // namespace gflow::store
