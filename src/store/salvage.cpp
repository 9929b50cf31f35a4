// SPDX-License-Identifier: Apache-2.0
#include "store/salvage.h"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/SQLiteCpp.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/text.h"
#include "os/clock.h"
#include "os/file.h"
#include "store/array_rows.h"
#include "store/backup.h"
#include "store/digest.h"
#include "store/drain_rows.h"
#include "store/health_rows.h"
#include "store/job_row.h"
#include "store/lived_row.h"
#include "store/payload_row.h"
#include "store/schema.h"
#include "store/sidecar.h"
#include "store/slice_rows.h"

namespace gflow::store {
namespace {

namespace fs = std::filesystem;

std::int64_t salvage_id(JobId id) { return static_cast<std::int64_t>(id.value); }

/// With a number if the machine failed; Code::Damaged if the file is to blame.
std::unexpected<Error> unread(const SQLite::Exception& exception) {
  Error error{.code = Code::Damaged, .message = exception.what()};
  const int code = exception.getExtendedErrorCode();
  switch (code & 0xff) {
    case SQLITE_IOERR:
      if (code != SQLITE_IOERR_SHORT_READ) error.number = EIO;
      break;
    case SQLITE_NOMEM:
      error.number = ENOMEM;
      break;
    case SQLITE_FULL:
      error.number = ENOSPC;
      break;
    case SQLITE_BUSY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
      error.number = EACCES;  // it reads a copy of its own
      break;
    default:
      break;
  }
  if (error.number != 0) error.code = Code::Failure;
  return std::unexpected<Error>(std::move(error));
}

bool is_damage(const Error& error) { return error.code == Code::Damaged; }

Result<void> copy_files(const std::string& path, const std::string& target) {
  for (const std::string suffix : {"", "-wal"}) {
    const bool is_there = GF_TRY(os::is_there(path + suffix));
    if (!suffix.empty() && !is_there) continue;
    std::error_code error;
    fs::copy_file(path + suffix, target + suffix, error);
    errno = error.value();
    if (error) return os::errno_error("copy", path + suffix);
  }
  return {};
}

Result<bool> quick_check(SQLite::Database& database) {
  try {
    return database.execAndGet("PRAGMA quick_check(1)").getString() == "ok";
  } catch (const SQLite::Exception& exception) {
    auto error = unread(exception);
    if (!is_damage(error.error())) return error;
    return false;
  }
}

/// What `read` returns, at the second try if the first throws. What cannot be read of a database
/// that is whole is no damage.
template <typename Read>
auto twice(bool whole, const Read& read) -> decltype(read()) {
  try {
    return read();
  } catch (const SQLite::Exception&) {
    try {
      return read();
    } catch (const SQLite::Exception& exception) {
      auto error = unread(exception);
      const bool is_of_sqlite = exception.getErrorCode() > 0;  // else a value that cannot be
      if (whole && is_of_sqlite) error.error().code = Code::Failure;
      return error;
    }
  }
}

/// The same, and nothing of what is damaged.
template <typename Read>
auto what_can_be_read(bool whole, const Read& read) -> Result<decltype(read())> {
  auto content = twice(whole, [&]() -> Result<decltype(read())> { return read(); });
  if (!content && is_damage(content.error())) return {};
  return content;
}

Result<void> sync_files(const std::string& file) {
  const std::string directory = fs::path(file).parent_path().string();
  for (const std::string& path : {file, directory}) {
    const int flags = path == file ? O_RDWR : O_RDONLY | O_DIRECTORY;
    const os::Fd fd = GF_TRY(os::open_file(path, flags));
    if (::fsync(fd.get()) != 0) return os::errno_error("sync", path);
  }
  return {};
}

Result<void> move_file(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return os::errno_error("rename", from);
  return {};
}

}  // namespace

struct Salvage::Core {
  explicit Core(SQLite::Database copy) : database(std::move(copy)) {
    commits =
        static_cast<std::uint64_t>(database.execAndGet("SELECT commits FROM meta").getInt64());
    next_id = JobId(
        static_cast<std::uint64_t>(database.execAndGet("SELECT next_id FROM meta").getInt64()));
  }

  SQLite::Database database;
  bool whole = false;
  std::uint64_t commits = 0;
  JobId next_id{1};
  Statement find_row{database, find_row_sql()};
  Statement load_dependencies{database,
                              "SELECT on_job FROM dependencies WHERE job = ? ORDER BY on_job"};
  Statement load_payload{database, kLoadPayloadSql};
  ArrayRows arrays{database};
};

Salvage::Salvage(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Salvage::~Salvage() = default;

/// SQLite takes some errors of reading for damage. What is damaged is so the second time, too.
Result<std::unique_ptr<Salvage>> Salvage::open(const std::string& path,
                                               const std::string& directory) {
  GF_CHECK(os::make_directories(directory + "/1"));
  auto first = open_copy(path, directory + "/1");
  const bool is_certain = first ? (*first)->is_whole() : !is_damage(first.error());
  if (is_certain) return first;
  GF_CHECK(os::make_directories(directory + "/2"));
  return open_copy(path, directory + "/2");
}

Result<std::unique_ptr<Salvage>> Salvage::open_copy(const std::string& path,
                                                    const std::string& directory) {
  const std::string copy = directory + "/" + fs::path(path).filename().string();
  GF_CHECK(copy_files(path, copy));
  try {
    SQLite::Database database(copy, SQLite::OPEN_READWRITE);
    database.exec("PRAGMA locking_mode = EXCLUSIVE");
    GF_CHECK(check_identity(database, path, migrations()));
    if (is_new(database)) return fail(Code::Damaged, "nothing is in it");
    const bool whole = GF_TRY(quick_check(database));
    GF_CHECK(upgrade(database, copy, migrations()));
    auto core = std::make_unique<Core>(std::move(database));
    core->whole = whole;
    return std::unique_ptr<Salvage>(new Salvage(std::move(core)));  // the constructor is private
  } catch (const SQLite::Exception& exception) {
    return unread(exception);
  }
}

bool Salvage::is_whole() const { return core_->whole; }
std::uint64_t Salvage::commits() const { return core_->commits; }
JobId Salvage::next_id() const { return core_->next_id; }

Result<std::optional<Job>> Salvage::job(JobId id) {
  return twice(core_->whole, [&]() -> Result<std::optional<Job>> {
    Query query(core_->find_row);
    if (!query.integer(salvage_id(id)).step()) return std::nullopt;
    const JobRange range = read_range(query);
    if (id < range.first.id) return std::nullopt;
    Job job = range.at(id.value - range.first.id.value);
    Query others(core_->load_dependencies);
    others.integer(salvage_id(range.last()));
    while (others.step()) job.spec.dependencies.jobs.emplace_back(others.as<std::uint64_t>());
    return job;
  });
}

Result<Payload> Salvage::payload(JobId id) {
  return twice(core_->whole, [&]() -> Result<Payload> {
    Query query(core_->load_payload);
    if (query.integer(salvage_id(id)).step()) return read_payload(query);
    if (auto payload = core_->arrays.payload(id)) return std::move(*payload);
    return fail(Code::Damaged, fmt::format("no payload of job {}", id.value));
  });
}

Result<std::vector<Drain>> Salvage::drains() {
  return what_can_be_read(core_->whole, [this] { return read_drain_rows(core_->database); });
}

Result<std::vector<NodeHealth>> Salvage::unhealthy() {
  return what_can_be_read(core_->whole, [this] { return read_health_rows(core_->database); });
}

Result<std::vector<MadeSlice>> Salvage::slices() {
  return what_can_be_read(core_->whole, [this] { return read_slice_rows(core_->database); });
}

Result<Lived> Salvage::lived() {
  return what_can_be_read(core_->whole, [this] { return read_lived(core_->database); });
}

Result<Known> known_of(const std::string& path) {
  const bool is_there = GF_TRY(os::is_there(path + ".ids"));
  if (!is_there) return Known{};
  const std::string boot_id = GF_TRY(os::boot_id());
  const Sidecar sidecar = GF_TRY(Sidecar::open(path + ".ids", boot_id));
  return Known{sidecar.next_id(), sidecar.commits(), sidecar.is_known()};
}

Result<std::vector<std::string>> install(const std::string& fresh,
                                         const std::string& path,
                                         const Known& known,
                                         WallTime now) {
  try {
    SQLite::Database database(fresh, SQLite::OPEN_READWRITE);
    // More than the lost one: what is put back of it some day is seen to be older.
    database.exec(fmt::format("UPDATE meta SET commits = max(commits, {})", known.commits + 1));
  } catch (const SQLite::Exception& exception) {
    return fail(Code::Failure, fmt::format("'{}': {}", printable(fresh), exception.what()));
  }
  GF_CHECK(sync_files(fresh));
  const std::string aside = fmt::format("{}.damaged-{}", path, file_stamp(now));
  std::vector<std::string> kept;
  // The database last: as long as it is there, a run that was cut short begins anew.
  for (const std::string suffix : {"-wal", ""}) {
    const bool is_there = GF_TRY(os::is_there(path + suffix));
    if (!is_there) continue;
    GF_CHECK(move_file(path + suffix, aside + suffix));
    kept.push_back(aside + suffix);
  }
  GF_CHECK(move_file(fresh, path));
  GF_CHECK(sync_files(path));
  const std::string boot_id = GF_TRY(os::boot_id());
  Sidecar sidecar = GF_TRY(Sidecar::open(path + ".ids", boot_id));
  GF_CHECK(sidecar.begin(known.next_id, known.commits + 1));
  const std::string digest = GF_TRY(digest_of_file(path));
  GF_CHECK(sidecar.end(digest));
  return kept;
}

}  // namespace gflow::store
