// SPDX-License-Identifier: Apache-2.0
#include "store/backup.h"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/text.h"
#include "os/file.h"

namespace gflow::store {
namespace {

constexpr std::string_view kInfix = ".backup-";

std::optional<WallTime> read_stamp(std::string_view text) {
  if (text.size() != 16) return std::nullopt;
  const auto part = [&](std::size_t at) { return text.substr(at, 2); };
  const auto time = parse_rfc3339(fmt::format("{}-{}-{}T{}:{}:{}",
                                              text.substr(0, 4),
                                              part(4),
                                              part(6),
                                              part(9),
                                              part(11),
                                              text.substr(13)));
  if (!time || file_stamp(*time) != text) return std::nullopt;
  return *time;
}

Result<void> sync(const std::string& path, int flags) {
  const os::Fd fd = GF_TRY(os::open_file(path, flags));
  if (::fsync(fd.get()) != 0) return os::errno_error("sync", path);
  return {};
}

std::unexpected<Error> copy_error(const std::string& path, int code, const char* what) {
  return fail((code & 0xff) == SQLITE_FULL ? Code::Exhausted : Code::Failure,
              fmt::format("copying the database to '{}': {}", printable(path), what));
}

}  // namespace

struct Backup::Core {
  struct FinishCopy {
    void operator()(sqlite3_backup* under_way) const { (void)sqlite3_backup_finish(under_way); }
  };

  Core(SQLite::Database& from, const std::string& part)
      : path(part), source(from.getHandle()), target(part, SQLite::OPEN_READWRITE) {
    // Synced as a whole when it is there.
    target.exec("PRAGMA synchronous = OFF");
    target.exec("PRAGMA journal_mode = OFF");
    copy.reset(sqlite3_backup_init(target.getHandle(), "main", source, "main"));
  }

  std::string path;
  sqlite3* source;
  SQLite::Database target;
  std::unique_ptr<sqlite3_backup, FinishCopy> copy;
};

Backup::Backup(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Backup::~Backup() = default;

Result<std::unique_ptr<Backup>> Backup::begin(SQLite::Database& source, const std::string& part) {
  (void)::unlink(part.c_str());  // of one that was cut short, if there
  // Jobs' environments hold secrets: SQLite itself would create it readable for all.
  (void)GF_TRY(os::open_file(part, O_RDWR | O_CREAT | O_EXCL, 0600));
  try {
    auto core = std::make_unique<Core>(source, part);
    if (!core->copy) {
      return copy_error(part, SQLITE_ERROR, sqlite3_errmsg(core->target.getHandle()));
    }
    return std::unique_ptr<Backup>(new Backup(std::move(core)));  // the constructor is private
  } catch (const SQLite::Exception& exception) {
    return copy_error(part, exception.getErrorCode(), exception.what());
  }
}

Result<bool> Backup::copy(int pages) {
  const int code = sqlite3_backup_step(core_->copy.get(), pages);
  if (code == SQLITE_OK) return false;
  if (code == SQLITE_DONE) return true;
  return copy_error(core_->path, code, sqlite3_errstr(code));
}

std::string file_stamp(WallTime time) {
  std::string text = rfc3339(std::chrono::floor<std::chrono::seconds>(time));
  text = text.substr(0, text.find('.'));
  std::erase_if(text, [](char letter) { return letter == '-' || letter == ':' || letter == 'Z'; });
  return text + 'Z';
}

std::string backup_part(const std::string& database) {
  return fmt::format("{}{}part", database, kInfix);
}

std::string backup_name(const std::string& database, WallTime taken) {
  return fmt::format("{}{}{}", database, kInfix, file_stamp(taken));
}

Result<std::vector<BackupFile>> list_backups(const std::string& database) {
  const std::filesystem::path path(database);
  const std::string directory = path.parent_path().string();
  const std::string prefix = path.filename().string() + std::string(kInfix);
  std::vector<BackupFile> files;
  for (const std::string& name : GF_TRY(os::names_in(directory))) {
    if (!name.starts_with(prefix)) continue;
    const auto taken = read_stamp(std::string_view(name).substr(prefix.size()));
    if (taken) files.push_back({directory + "/" + name, *taken});
  }
  std::ranges::sort(files, {}, &BackupFile::taken);
  return files;
}

Result<void> publish_backup(const std::string& database, WallTime taken, std::size_t keep) {
  const std::string part = backup_part(database);
  const std::string name = backup_name(database, taken);
  GF_CHECK(sync(part, O_RDWR));
  if (::rename(part.c_str(), name.c_str()) != 0) return os::errno_error("rename", part);
  GF_CHECK(sync(std::filesystem::path(database).parent_path().string(), O_RDONLY | O_DIRECTORY));
  std::vector<BackupFile> files = GF_TRY(list_backups(database));
  // Where the clock was set back the newest is not the last by name: it stays.
  std::erase_if(files, [&](const BackupFile& file) { return file.path == name; });
  for (std::size_t i = 0; i + keep < files.size() + 1; ++i) {
    if (::unlink(files[i].path.c_str()) != 0) return os::errno_error("remove", files[i].path);
  }
  return {};
}

}  // namespace gflow::store
