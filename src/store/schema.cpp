// SPDX-License-Identifier: Apache-2.0
#include "store/schema.h"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Transaction.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

#include "base/text.h"
#include "os/file.h"
#include "store/connection.h"
#include "store/query.h"

namespace gflow::store {
namespace {

constexpr auto kMigrations = std::to_array<Migration>({
#include "store/schema_files.inc"
});

constexpr std::int64_t kApplicationId = 0x67'66'6c'77;  // "gflw"

std::int64_t number(SQLite::Database& database, const char* sql) {
  return database.execAndGet(sql).getInt64();
}

int schema_of(SQLite::Database& database) {
  return static_cast<int>(number(database, "PRAGMA user_version"));
}

/// While a table is made anew and the old one dropped, which would take with it what points to it.
/// The pragma does nothing inside a transaction.
class ForeignKeysOff {
 public:
  explicit ForeignKeysOff(SQLite::Database& database) : database_(database) {
    database_.exec("PRAGMA foreign_keys = OFF");
  }
  ~ForeignKeysOff() { (void)database_.tryExec("PRAGMA foreign_keys = ON"); }  // no error is known
  ForeignKeysOff(const ForeignKeysOff&) = delete;
  ForeignKeysOff& operator=(const ForeignKeysOff&) = delete;

 private:
  SQLite::Database& database_;
};

Result<void> back_up(SQLite::Database& database, const std::string& path) {
  const std::string target = backup_path(path, schema_of(database));
  const std::string part = target + ".part";
  (void)::unlink(part.c_str());  // left by an upgrade that was cut short, if there
  // Jobs' environments hold secrets: SQLite itself would create it readable for all.
  os::Fd fd = GF_TRY(os::open_file(part, O_RDWR | O_CREAT | O_EXCL, 0600));
  Statement copy(database, "VACUUM INTO ?");
  Query(copy).text(part).run();
  if (::fsync(fd.get()) != 0) return os::errno_error("sync", part);
  if (::rename(part.c_str(), target.c_str()) != 0) return os::errno_error("rename", part);
  return {};
}

std::unexpected<Error> of_another_program(const std::string& path) {
  return fail(Code::Failure,
              fmt::format("'{}' is a database of another program: move it away or set another "
                          "state directory",
                          printable(path)));
}

/// Errors: Failure for one of a newer gflow, with the way out.
Result<void> check_schema(int schema, const std::string& path, std::span<const Migration> known) {
  const int newest = known.back().number;
  if (schema <= newest) return {};
  std::string way_out = "install that version again";
  for (int older = newest; older > 0; --older) {
    const std::string backup = backup_path(path, older);
    if (!os::is_file(backup)) continue;
    way_out += fmt::format(
        ", or put the copy made before the upgrade in its place: mv '{0}' '{1}' && rm -f '{1}-wal' "
        "&& gflow doctor --recover",
        printable(backup),
        printable(path));
    break;
  }
  return fail(
      Code::Failure,
      fmt::format("'{}' was written by a newer gflow (schema {}, this one knows up to {}): {}",
                  printable(path),
                  schema,
                  newest,
                  way_out));
}

}  // namespace

std::span<const Migration> migrations() { return kMigrations; }

bool is_new(SQLite::Database& database) {
  return schema_of(database) == 0 && number(database, "SELECT count(*) FROM sqlite_schema") == 0;
}

bool is_newest(SQLite::Database& database, std::span<const Migration> known) {
  return schema_of(database) >= known.back().number;
}

Result<void> check_identity(SQLite::Database& database,
                            const std::string& path,
                            std::span<const Migration> known) {
  if (is_new(database)) return {};
  if (number(database, "PRAGMA application_id") != kApplicationId) return of_another_program(path);
  return check_schema(schema_of(database), path, known);
}

Result<void> check_header(const std::string& path, std::span<const Migration> known) {
  // "Database File Format" of SQLite: numbers have their highest byte first.
  constexpr std::string_view kMagic{"SQLite format 3\0", 16};
  constexpr std::size_t kHeader = 100;
  constexpr std::size_t kUserVersion = 60;
  constexpr std::size_t kApplication = 68;
  const os::Fd file = GF_TRY(os::open_file(path, O_RDONLY));
  std::string header(kHeader, '\0');
  const ssize_t got = ::pread(file.get(), header.data(), header.size(), 0);
  if (got < 0) return os::errno_error("read", path);
  if (static_cast<std::size_t>(got) < kHeader) return {};  // all of it is in the WAL
  const auto at = [&header](std::size_t place) {
    std::uint32_t value = 0;
    for (const char byte : std::string_view(header).substr(place, sizeof value)) {
      value = value << 8U | static_cast<unsigned char>(byte);
    }
    return value;
  };
  if (!header.starts_with(kMagic)) return damaged(path, "it does not begin as a database does");
  const std::uint32_t application = at(kApplication);
  if (application != 0 && application != kApplicationId) return of_another_program(path);
  return check_schema(static_cast<int>(at(kUserVersion)), path, known);
}

std::string backup_path(const std::string& path, int schema) {
  return fmt::format("{}.schema-{}", path, schema);
}

Result<void> upgrade(SQLite::Database& database,
                     const std::string& path,
                     std::span<const Migration> known) {
  if (is_newest(database, known)) return {};
  const int schema = schema_of(database);
  const bool in_file = path != ":memory:";
  if (in_file && !is_new(database)) GF_CHECK(back_up(database, path));
  const ForeignKeysOff off(database);
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  for (const Migration& migration : known) {
    if (migration.number > schema) database.exec(std::string(migration.sql));
  }
  if (number(database, "SELECT count(*) FROM pragma_foreign_key_check") != 0) {
    return fail(Code::Damaged,
                fmt::format("'{}' has rows of jobs that are not there: it stays at schema {}",
                            printable(path),
                            schema));
  }
  database.exec(fmt::format("PRAGMA application_id = {}", kApplicationId));
  database.exec(fmt::format("PRAGMA user_version = {}", known.back().number));
  transaction.commit();
  return {};
}

}  // namespace gflow::store
