// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <SQLiteCpp/Database.h>

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gflow::store {

/// One file of schema/: what brings a database from the schema before it to this one.
struct Migration {
  int number = 0;
  std::string_view sql;
};
/// All of them: 1, 2, 3, ...
[[nodiscard]] std::span<const Migration> migrations();

/// True for a database with nothing in it.
[[nodiscard]] bool is_new(SQLite::Database& database);
/// True for one that upgrade() leaves as it is.
[[nodiscard]] bool is_newest(SQLite::Database& database, std::span<const Migration> known);
/// Errors: Failure for a database of another program and for one of a newer gflow.
[[nodiscard]] Result<void> check_identity(SQLite::Database& database,
                                          const std::string& path,
                                          std::span<const Migration> known);

/// The same of one that another process has open, and damage of its first bytes, as far as these
/// tell: the schema may be a newer one in its WAL. Nothing of SQLite's is used, nor disturbed.
[[nodiscard]] Result<void> check_header(const std::string& path, std::span<const Migration> known);

/// Where the copy lies that is made before a database leaves a schema.
[[nodiscard]] std::string backup_path(const std::string& path, int schema);
/// Brings the database to the last schema of `known` in one transaction. One that is not new is
/// copied to backup_path() first. Throws SQLite::Exception, with the database as it was.
[[nodiscard]] Result<void> upgrade(SQLite::Database& database,
                                   const std::string& path,
                                   std::span<const Migration> known);

}  // namespace gflow::store
