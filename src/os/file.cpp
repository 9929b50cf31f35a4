// SPDX-License-Identifier: Apache-2.0
#include "os/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "base/text.h"
#include "base/translate.h"
#include "os/user.h"

namespace gflow::os {
namespace {

Code code_of(int number) {
  switch (number) {
    case ENOENT:
    case ENOTDIR:
    case ESRCH:
      return Code::NotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::Permission;
    case ENOSPC:
    case EDQUOT:
      return Code::Exhausted;
    default:
      return Code::Failure;
  }
}

}  // namespace

std::unexpected<Error> errno_error(std::string_view doing, std::string_view path) {
  const int number = errno;
  const std::string what = std::system_category().message(number);
  const std::string where = path.empty() ? std::string() : fmt::format(" '{}'", printable(path));
  return std::unexpected<Error>(
      Error{code_of(number), fmt::format("{}{}: {}", doing, where, what), number});
}

Result<Fd> open_file(const std::string& path, int flags, mode_t mode) {
  Fd fd(::open(path.c_str(), flags | O_CLOEXEC, mode));
  if (!fd.valid()) return errno_error("open", path);
  return fd;
}

namespace {

Result<std::string> read_open(const Fd& fd, const std::string& path, Memory most) {
  std::string content;
  std::array<char, 65536> buffer;  // a small file is not to cost writing 64 KiB
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("read", path);
    if (got == 0) return content;
    content.append(buffer.data(), static_cast<std::size_t>(got));
    if (content.size() > static_cast<std::size_t>(most.bytes)) {
      return fail(Code::Exhausted,
                  tr_format("'{}' is larger than {}", printable(path), memory_text(most)));
    }
  }
}

}  // namespace

Result<std::string> read_file(const std::string& path, Memory most) {
  const Fd fd = GF_TRY(open_file(path, O_RDONLY));
  return read_open(fd, path, most);
}

Result<std::string> read_regular_file(const std::string& path, Memory most) {
  // Of a pipe nobody writes to, open() would wait.
  const Fd fd = GF_TRY(open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  struct stat facts{};
  if (::fstat(fd.get(), &facts) != 0) return errno_error("look at", path);
  const bool is_null = S_ISCHR(facts.st_mode) && facts.st_rdev == makedev(1, 3);
  if (S_ISREG(facts.st_mode) || is_null) return read_open(fd, path, most);
  return fail(Code::Usage, tr_format("'{}' is not a regular file", printable(path)));
}

Result<std::optional<std::string>> read_if_exists(const std::string& path, Memory most) {
  auto content = read_file(path, most);
  if (content) return std::move(*content);
  // ENODEV: read after what it told of was removed, as a control group.
  const Error& error = content.error();
  if (error.code == Code::NotFound || error.number == ENODEV) return std::nullopt;
  return std::unexpected(error);
}

Result<void> write_all(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t put = ::write(fd, data.data(), data.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno_error("write");
    data.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

Result<void> write_file(const std::string& path, std::string_view data, mode_t mode) {
  const Fd fd = GF_TRY(open_file(path, O_WRONLY | O_CREAT | O_TRUNC, mode));
  auto written = write_all(fd.get(), data);
  if (!written) return with_context(written.error(), path);
  return {};
}

Result<void> make_directories(const std::string& path, mode_t mode) {
  for (std::size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    const std::string part = path.substr(0, at);
    if (::mkdir(part.c_str(), mode) != 0 && errno != EEXIST) {
      const int error = errno;
      if (!is_directory(part)) {
        errno = error;
        return errno_error("create directory", part);
      }
    }
    if (at == std::string::npos) break;
  }
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0) return errno_error("look at", path);
  if (S_ISDIR(facts.st_mode)) return {};
  return fail(Code::Failure, tr_format("'{}' exists and is not a directory", printable(path)));
}

Result<void> make_own_directory(const std::string& path, mode_t mode) {
  GF_CHECK(make_directories(path, mode));
  const Fd directory = GF_TRY(open_file(path, O_RDONLY | O_DIRECTORY));
  struct stat facts{};
  if (::fstat(directory.get(), &facts) != 0) return errno_error("look at", path);
  if (facts.st_uid != ::geteuid()) {
    if (facts.st_uid == 0) return {};
    return fail(Code::Permission,
                tr_format("'{}' belongs to {} (uid {}), who could change what gflow keeps there: "
                          "remove it, or choose another place",
                          printable(path),
                          printable(account_of(facts.st_uid).name),
                          facts.st_uid));
  }
  constexpr mode_t kNotOthers = 0755;
  const mode_t wanted = (facts.st_mode & kNotOthers) | mode;
  if ((facts.st_mode & 07777) != wanted && ::fchmod(directory.get(), wanted) != 0) {
    return errno_error("set the mode of", path);
  }
  return {};
}

bool is_own_directory(const std::string& path) {
  struct stat facts{};
  return ::stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == ::geteuid();
}

Result<void> remove_tree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) {
    return fail(Code::Failure, tr_format("remove '{}': {}", printable(path), error.message()));
  }
  return {};
}

Result<std::vector<std::string>> names_in(const std::string& directory) {
  struct CloseDir {
    void operator()(DIR* dir) const { (void)::closedir(dir); }
  };
  const std::unique_ptr<DIR, CloseDir> dir(::opendir(directory.c_str()));
  if (dir == nullptr) return errno_error("open", directory);
  std::vector<std::string> names;
  errno = 0;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread has this directory open
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return errno_error("read", directory);
  return names;
}

bool is_file(const std::string& path) {
  struct stat facts{};
  return ::stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode);
}

bool is_directory(const std::string& path) {
  struct stat facts{};
  return ::stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
}

bool exists(const std::string& path) {
  struct stat facts{};
  return ::lstat(path.c_str(), &facts) == 0;
}

Result<bool> is_there(const std::string& path) {
  struct stat facts{};
  if (::lstat(path.c_str(), &facts) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return errno_error("look at", path);
}

std::string network_file_system(const std::string& path) {
  struct Kind {
    long magic;  // linux/magic.h and statfs(2)
    const char* name;
  };
  constexpr std::array<Kind, 8> kKinds = {{{0x6969, "nfs"},
                                           {0x65735546, "fuse"},
                                           {0x517B, "smb"},
                                           {0xFF534D42, "cifs"},
                                           {0xFE534D42, "smb2"},
                                           {0x0BD00BD0, "lustre"},
                                           {0x00C36400, "ceph"},
                                           {0x01021997, "9p"}}};
  struct statfs facts{};
  if (::statfs(path.c_str(), &facts) != 0) return {};
  for (const Kind& kind : kKinds) {
    if (static_cast<unsigned long>(facts.f_type) == static_cast<unsigned long>(kind.magic)) {
      return kind.name;
    }
  }
  return {};
}

Result<Fd> lock_file(const std::string& path) {
  Fd fd = GF_TRY(open_file(path, O_RDWR | O_CREAT));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno == EWOULDBLOCK) {
    return fail(Code::WrongState, tr_format("'{}' is locked by another process", printable(path)));
  }
  return errno_error("lock", path);
}

}  // namespace gflow::os
