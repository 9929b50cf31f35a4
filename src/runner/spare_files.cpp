// SPDX-License-Identifier: Apache-2.0
#include "runner/spare_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "attempt/exit_record.h"
#include "os/file.h"

namespace gflow::runner {
namespace {

/// No attempt's name.
constexpr std::string_view kSparePrefix = "spare.";
constexpr std::size_t kMaxSpare = 64;

/// False if something has that name: nothing is replaced.
bool rename_to_new(const std::string& from, const std::string& to) {
  return ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0;
}

/// In place: what is made shorter than it is and written again has blocks to find.
bool overwrite(const std::string& path, std::string_view content) {
  const auto file = os::open_file(path, O_WRONLY | O_NOFOLLOW);
  if (!file) return false;
  const ssize_t put = ::pwrite(file->get(), content.data(), content.size(), 0);
  struct stat facts{};
  if (put != static_cast<ssize_t>(content.size()) || ::fstat(file->get(), &facts) != 0) {
    return false;
  }
  return facts.st_size == static_cast<off_t>(content.size()) ||
         ::ftruncate(file->get(), static_cast<off_t>(content.size())) == 0;
}

/// It says neither how an attempt ended nor that one is claimed.
bool make_silent(const std::string& directory) {
  constexpr std::array<char, attempt::kExitFileSize + attempt::kStartedSize> kNothing{};
  return overwrite(directory + "/exit", {kNothing.data(), kNothing.size()}) &&
         ::unlink((directory + "/claim").c_str()) == 0;
}

bool set_mode(const std::string& directory, mode_t mode) {
  struct stat facts{};
  if (::stat(directory.c_str(), &facts) != 0) return false;
  return (facts.st_mode & 07777) == mode || ::chmod(directory.c_str(), mode) == 0;
}

}  // namespace

std::vector<std::string> SpareFiles::left_in(const std::string& attempts_dir) {
  std::vector<std::string> left;
  for (const std::string& name : os::names_in(attempts_dir).value_or(std::vector<std::string>{})) {
    if (name.starts_with(kSparePrefix)) left.push_back(attempts_dir + "/" + name);
  }
  return left;
}

bool SpareFiles::keep(const AttemptFiles& files) {
  if (spare_.size() >= kMaxSpare) return false;
  const std::string name =
      attempts_dir_ + "/" + std::string(kSparePrefix) + std::to_string(++made_);
  // Silent under its own name, which is not its job's any more: until then the record is the truth.
  if (!rename_to_new(files.directory(), name)) return false;
  if (make_silent(name)) {
    spare_.push_back(name);
  } else {
    (void)os::remove_tree(name);  // what cannot be removed now is removed at the next start
  }
  return true;
}

Result<bool> SpareFiles::use(const AttemptFiles& files, std::string_view order, mode_t mode) {
  if (spare_.empty()) return false;
  const std::string name = std::move(spare_.back());
  spare_.pop_back();
  const bool is_ready = set_mode(name, mode) && overwrite(name + "/order", order);
  if (is_ready && rename_to_new(name, files.directory())) return true;
  const int number = is_ready ? errno : 0;
  (void)os::remove_tree(name);  // as above
  errno = number;
  if (number == EEXIST) return os::errno_error("create directory", files.directory());
  return false;
}

}  // namespace gflow::runner
