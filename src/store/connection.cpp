// SPDX-License-Identifier: Apache-2.0
#include "store/connection.h"

#include <SQLiteCpp/Column.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <filesystem>
#include <future>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "os/clock.h"
#include "os/file.h"
#include "store/digest.h"
#include "store/schema.h"

namespace gflow::store {
namespace {

/// "job 4", "jobs 4-9": those from `first` on and before `next`.
std::string ids_text(std::uint64_t first, std::uint64_t next) {
  if (next == first + 1) return fmt::format("job {}", first);
  return fmt::format("jobs {}-{}", first, next - 1);
}

Result<void> refuse_network(const std::string& path) {
  const std::string directory = std::filesystem::absolute(path).parent_path().string();
  const std::string kind = os::network_file_system(directory);
  if (kind.empty()) return {};
  return fail(
      Code::Failure,
      fmt::format("'{}' lies on a network file system ({}), where locks and syncs cannot be "
                  "relied on: set XDG_DATA_HOME to a local disk",
                  printable(directory),
                  kind));
}

/// Whether it holds every batch the sidecar knows of. Ids alone prove nothing: those of a batch
/// that was being committed when the daemon was killed are given out and lost.
Result<void> check_commits(SQLite::Database& database,
                           const std::string& path,
                           const Sidecar& sidecar) {
  const bool counts =
      database.execAndGet("SELECT count(*) FROM pragma_table_info('meta') WHERE name = 'commits'")
          .getInt() != 0;
  const auto held = static_cast<std::uint64_t>(
      counts ? database.execAndGet("SELECT commits FROM meta").getInt64() : 0);
  if (held > 0 && !sidecar.is_known()) {
    return fail(Code::Damaged,
                fmt::format("'{0}.ids', by which it is known whether anything is missing in the "
                            "database '{0}', is not there or damaged: put it back, or 'gflow "
                            "doctor --recover' takes over what the database holds",
                            printable(path)));
  }
  if (held >= sidecar.commits()) return {};
  const auto next_id =
      static_cast<std::uint64_t>(database.execAndGet("SELECT next_id FROM meta").getInt64());
  std::string lost = fmt::format(
      "the last {} of {} transactions are missing", sidecar.commits() - held, sidecar.commits());
  if (next_id < sidecar.next_id().value) {
    lost += fmt::format(", and with them {}", ids_text(next_id, sidecar.next_id().value));
  }
  return damaged(path, lost);
}

/// A database that is not there, or has nothing in it.
Result<void> check_absent(const std::string& path, const Sidecar& sidecar) {
  if (sidecar.commits() == 0 && sidecar.next_id() == JobId(1)) return {};
  return fail(
      Code::Damaged,
      fmt::format(
          "the database '{0}' is missing or empty, and with it {1}: put it back, or 'gflow "
          "doctor --recover' rebuilds it from the last backup and the jobs that "
          "run; to begin with an empty queue remove '{0}.ids' too",
          printable(path),
          sidecar.next_id() == JobId(1) ? "what it held" : ids_text(1, sidecar.next_id().value)));
}

void configure(SQLite::Database& database) {
  database.exec("PRAGMA journal_mode = WAL");
  // NORMAL would lose what was acknowledged when the power fails.
  database.exec("PRAGMA synchronous = FULL");
  database.exec("PRAGMA foreign_keys = ON");
  database.exec("PRAGMA trusted_schema = OFF");
  // ON, the default of some builds, would write what is deleted once more: on a full disk nothing
  // could be cancelled.
  database.exec("PRAGMA secure_delete = FAST");
  database.exec("PRAGMA cache_size = -65536");            // KiB
  database.exec("PRAGMA journal_size_limit = 67108864");  // a WAL that has grown shrinks again
}

/// So that another process is kept out, and another connection of this one is not.
constexpr const char* kVfs = "unix-excl";

/// One thread each, so SQLite need not lock its mutex for each column: a tenth of load().
constexpr int kOneThread = SQLITE_OPEN_NOMUTEX;

Result<void> check_content(const std::string& path) {
  try {
    // Opened to be read only, SQLite would leave out the constraints that are written as CHECK.
    SQLite::Database database(path, SQLite::OPEN_READWRITE | kOneThread, 0, kVfs);
    database.exec("PRAGMA query_only = ON");
    checkpoint_on_close(database, Checkpoint::No);
    const std::string verdict = database.execAndGet("PRAGMA quick_check(1)").getString();
    if (verdict != "ok") return damaged(path, verdict);
    return {};
  } catch (const SQLite::Exception& exception) {
    return open_error(exception, path);
  }
}

/// In a thread of its own; where there can be none, when it is asked for.
std::shared_future<Result<void>> begin_content_check(const std::string& path) {
  try {
    return std::async(std::launch::async, check_content, path);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, check_content, path);
  }
}

/// Whether the start itself writes into the database.
bool is_written_at_start(SQLite::Database& database) {
  return !is_newest(database, migrations()) ||
         database.execAndGet("PRAGMA journal_mode").getString() != "wal";
}

}  // namespace

void checkpoint_on_close(SQLite::Database& database, Checkpoint checkpoint) {
  const int never = checkpoint == Checkpoint::No ? 1 : 0;
  (void)sqlite3_db_config(
      database.getHandle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, never, static_cast<int*>(nullptr));
}

Result<Connection> connect(const std::string& path) {
  const int flags = SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE | kOneThread;
  if (path == kMemoryPath) {
    Connection connection{SQLite::Database(path, flags), std::nullopt, {}};
    configure(connection.database);
    GF_CHECK(upgrade(connection.database, path, migrations()));
    return connection;
  }
  GF_CHECK(refuse_network(path));
  const std::string boot_id = GF_TRY(os::boot_id());
  Sidecar sidecar = GF_TRY(Sidecar::open(path + ".ids", boot_id));
  const bool is_there = GF_TRY(os::is_there(path));
  if (!is_there) GF_CHECK(check_absent(path, sidecar));
  // Jobs' environments hold secrets: SQLite itself would create it readable for all.
  (void)GF_TRY(os::open_file(path, O_RDWR | O_CREAT, 0600));
  // Before SQLite opens it: to close a second descriptor of a file would drop SQLite's locks on it.
  const std::string digest = sidecar.digest().empty() ? "" : GF_TRY(digest_of_file(path));
  Connection connection{SQLite::Database(path, flags, 0, kVfs), std::move(sidecar), {}};
  SQLite::Database& database = connection.database;
  checkpoint_on_close(database, Checkpoint::No);
  GF_CHECK(check_identity(database, path, migrations()));
  const bool created = is_new(database);
  if (created) {
    GF_CHECK(check_absent(path, *connection.sidecar));
    // So that what is deleted can be given back to the file system; only a new database can.
    database.exec("PRAGMA auto_vacuum = INCREMENTAL");
  }
  if (!digest.empty() && digest != connection.sidecar->digest()) {
    return damaged(path, "it was changed after gflowd had closed it");
  }
  if (!created) GF_CHECK(check_commits(database, path, *connection.sidecar));
  if (digest.empty() && !created) {
    // Everything is read: as long as all the rest of a start takes, so beside it.
    connection.content_check = begin_content_check(path);
    if (is_written_at_start(database)) GF_CHECK(connection.content_check.get());
  }
  configure(database);
  GF_CHECK(upgrade(database, path, migrations()));
  return connection;
}

std::unexpected<Error> damaged(const std::string& path, std::string_view detail) {
  return fail(Code::Damaged,
              fmt::format("the database '{}' is damaged ({}), and is left as it is: 'gflow doctor "
                          "--recover' rebuilds it from what can be read, the last backup and the "
                          "jobs that run, and keeps the damaged files",
                          printable(path),
                          printable(detail)));
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
      return fail(Code::Damaged,
                  fmt::format("'{}' is not a gflow database: move it away or set another state "
                              "directory; if it was one, 'gflow doctor --recover' rebuilds it",
                              name));
    case SQLITE_FULL:
      return fail(
          Code::Exhausted,
          fmt::format("no space left on the disk for '{}': make room and start again", name));
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_IOERR:
    case SQLITE_NOMEM:
      return fail(
          Code::Failure,
          fmt::format(
              "'{}' cannot be read or written ({}): check its disk and who owns it", name, what));
    default:
      return damaged(path, what);
  }
}

}  // namespace gflow::store
