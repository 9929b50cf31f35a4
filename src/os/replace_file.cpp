// SPDX-License-Identifier: Apache-2.0
#include "os/replace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/text.h"
#include "base/translate.h"
#include "os/file.h"

namespace gflow::os {
namespace {

/// Where the file really is; the path itself if there is none yet.
std::string target_of(const std::string& path) {
  struct Free {
    void operator()(char* text) const { std::free(text); }  // NOLINT: realpath() wants it so
  };
  const std::unique_ptr<char, Free> real(::realpath(path.c_str(), nullptr));
  return real == nullptr ? path : real.get();
}

/// A file beside another, which is gone again unless it takes its place.
class Beside {
 public:
  static Result<Beside> make(const std::string& target) {
    std::string path = target + ".XXXXXX";
    Fd fd(::mkostemp(path.data(), O_CLOEXEC));
    if (!fd.valid()) return errno_error("create", path);
    return Beside(std::move(fd), std::move(path));
  }
  Beside(Beside&& other) noexcept
      : fd_(std::move(other.fd_)), path_(std::exchange(other.path_, {})) {}
  Beside& operator=(Beside&&) = delete;
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;
  ~Beside() {
    if (!path_.empty()) (void)::unlink(path_.c_str());
  }

  /// Gives it the owner and mode of the file it is to replace, if there is one.
  [[nodiscard]] Result<void> look_like(const std::string& target) const {
    struct stat facts{};
    struct stat own{};
    if (::stat(target.c_str(), &facts) != 0) return {};
    if (::fstat(fd_.get(), &own) != 0) return errno_error("look at", path_);
    const bool same = facts.st_uid == own.st_uid && facts.st_gid == own.st_gid;
    if (!same && ::fchown(fd_.get(), facts.st_uid, facts.st_gid) != 0) {
      return errno_error("keep the owner of", target);
    }
    if (::fchmod(fd_.get(), facts.st_mode & 07777) != 0)
      return errno_error("set the mode of", path_);
    return {};
  }
  [[nodiscard]] Result<void> write(std::string_view data) const {
    if (auto done = write_all(fd_.get(), data); !done) return with_context(done.error(), path_);
    if (::fsync(fd_.get()) != 0) return errno_error("sync", path_);
    return {};
  }
  [[nodiscard]] Result<void> take_place_of(const std::string& target) {
    if (::rename(path_.c_str(), target.c_str()) != 0) return errno_error("replace", target);
    path_.clear();
    const std::string directory = target.substr(0, target.rfind('/') + 1);
    const Fd fd = GF_TRY(open_file(directory.empty() ? "." : directory, O_RDONLY | O_DIRECTORY));
    if (::fsync(fd.get()) != 0) return errno_error("sync directory", directory);
    return {};
  }

 private:
  Beside(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  Fd fd_;
  std::string path_;
};

}  // namespace

Result<void> replace_file(const std::string& path,
                          std::string_view data,
                          const std::optional<std::string>& was) {
  const std::string target = target_of(path);
  Beside fresh = GF_TRY(Beside::make(target));
  GF_CHECK(fresh.look_like(target));
  GF_CHECK(fresh.write(data));
  if (GF_TRY(read_if_exists(target)) != was) {
    return fail(
        Code::WrongState,
        tr_format("'{}' was changed by somebody else meanwhile; try again", printable(path)));
  }
  return fresh.take_place_of(target);
}

}  // namespace gflow::os
