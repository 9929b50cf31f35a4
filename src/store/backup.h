// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace SQLite {  // NOLINT(readability-identifier-naming): the library's own name
class Database;
}

namespace gflow::store {

/// A copy of an open database, made slice by slice while it is written: what is committed meanwhile
/// is in it. On the thread of the store, and gone before it.
class Backup {
 public:
  /// Errors: `part` cannot be created.
  [[nodiscard]] static Result<std::unique_ptr<Backup>> begin(SQLite::Database& source,
                                                             const std::string& part);
  ~Backup();
  Backup(const Backup&) = delete;
  Backup& operator=(const Backup&) = delete;

  /// Copies so many pages of 4 KiB more; true once all are there. Errors are final.
  [[nodiscard]] Result<bool> copy(int pages);

 private:
  struct Core;
  explicit Backup(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

/// "20261122T013000Z", for names of files: sorts as time does.
[[nodiscard]] std::string file_stamp(WallTime time);

/// Where a copy that is being made lies, and where it lies once it is whole.
[[nodiscard]] std::string backup_part(const std::string& database);
[[nodiscard]] std::string backup_name(const std::string& database, WallTime taken);

/// A whole copy, by the time in its name.
struct BackupFile {
  std::string path;
  WallTime taken;
};
/// Those there are of a database, oldest first. Errors: its directory cannot be read.
[[nodiscard]] Result<std::vector<BackupFile>> list_backups(const std::string& database);

/// Puts a finished copy in its place, on disk when this returns, and removes the oldest beyond
/// `keep`. Touches no store: any thread may do it.
[[nodiscard]] Result<void> publish_backup(const std::string& database,
                                          WallTime taken,
                                          std::size_t keep);

}  // namespace gflow::store
