// SPDX-License-Identifier: Apache-2.0
#include "store/lived_row.h"

#include "store/query.h"

namespace gflow::store {

Lived read_lived(SQLite::Database& database) {
  Statement row(database, "SELECT lived_ms, lived_mono_ms, lived_boot_id FROM meta");
  Query query(row);
  Lived lived;
  if (!query.step()) return lived;
  lived.total = std::chrono::milliseconds(query.integer());
  lived.at = MonoTime(std::chrono::milliseconds(query.integer()));
  lived.boot_id = query.text();
  return lived;
}

}  // namespace gflow::store
