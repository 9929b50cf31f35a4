// SPDX-License-Identifier: Apache-2.0
#include "store/connection.h"

#include <SQLiteCpp/Column.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <filesystem>
#include <utility>

#include "base/text.h"
#include "os/clock.h"
#include "os/file.h"
#include "store/schema.h"

namespace gflow::store {
namespace {

Result<void> refuse_network(const std::string& path) {
  const std::string directory = std::filesystem::absolute(path).parent_path().string();
  const std::string kind = os::network_file_system(directory);
  if (kind.empty()) return {};
  return fail(
      Code::Failure,
      fmt::format("'{}' lies on a network file system ({}), where locks and syncs cannot be "
                  "relied on: set a state directory on a local disk",
                  printable(directory),
                  kind));
}

std::unexpected<Error> damaged(const std::string& path, std::string_view detail) {
  return fail(
      Code::Failure,
      fmt::format("the database '{0}' is damaged ({1}): move '{0}' and '{0}-wal' away, and put "
                  "a backup in their place or start with an empty queue",
                  printable(path),
                  printable(detail)));
}

void configure(SQLite::Database& database) {
  database.exec("PRAGMA journal_mode = WAL");
  // NORMAL would lose what was acknowledged when the power fails.
  database.exec("PRAGMA synchronous = FULL");
  database.exec("PRAGMA foreign_keys = ON");
  database.exec("PRAGMA trusted_schema = OFF");
  database.exec("PRAGMA cache_size = -65536");            // KiB
  database.exec("PRAGMA journal_size_limit = 67108864");  // a WAL that has grown shrinks again
}

Result<void> check_content(SQLite::Database& database, const std::string& path) {
  const std::string verdict = database.execAndGet("PRAGMA quick_check(1)").getString();
  if (verdict != "ok") return damaged(path, verdict);
  return {};
}

}  // namespace

Result<Connection> connect(const std::string& path) {
  // One thread, so SQLite need not lock its mutex for each column: a tenth of load().
  const int flags = SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE | SQLite::OPEN_NOMUTEX;
  const bool in_file = path != kMemoryPath;
  if (in_file) {
    GF_CHECK(refuse_network(path));
    // Jobs' environments hold secrets: SQLite itself would create it readable for all.
    (void)GF_TRY(os::open_file(path, O_RDWR | O_CREAT, 0600));
  }
  Connection connection{SQLite::Database(path, flags), std::nullopt};
  SQLite::Database& database = connection.database;
  database.exec("PRAGMA locking_mode = EXCLUSIVE");
  GF_CHECK(check_identity(database, path, migrations()));
  const bool created = is_new(database);
  configure(database);
  if (in_file) {
    const std::string boot_id = GF_TRY(os::boot_id());
    connection.sidecar = GF_TRY(Sidecar::open(path + ".ids", boot_id));
    // It reads everything, a second or two for a million jobs: only when there is a reason to
    // doubt.
    if (!created && !connection.sidecar->ended_in_order()) GF_CHECK(check_content(database, path));
  }
  GF_CHECK(upgrade(database, path, migrations()));
  return connection;
}

std::unexpected<Error> open_error(const SQLite::Exception& exception, const std::string& path) {
  const std::string name = printable(path);
  const std::string what = printable(exception.what());
  switch (exception.getErrorCode() & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return fail(
          Code::Failure,
          fmt::format("'{}' is in use by another process: stop the other gflowd first", name));
    case SQLITE_NOTADB:
      return fail(Code::Failure,
                  fmt::format("'{}' is not a gflow database: move it away or set another state "
                              "directory",
                              name));
    case SQLITE_FULL:
      return fail(
          Code::Exhausted,
          fmt::format("no space left on the disk for '{}': make room and start again", name));
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_IOERR:
      return fail(
          Code::Failure,
          fmt::format(
              "'{}' cannot be read or written ({}): check its disk and who owns it", name, what));
    default:
      return damaged(path, what);
  }
}

}  // namespace gflow::store
