// SPDX-License-Identifier: Apache-2.0
#include "interpose/lock_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace gflow::interpose {
namespace {

/// 0 if there is no such descriptor. Past the C library: older ones have no function of that name.
ino_t inode_of_file(int file) {
  struct stat facts{};
  return file >= 0 && ::syscall(SYS_fstat, file, &facts) == 0 ? facts.st_ino : 0;
}

struct flock lock_of(off_t from, off_t count, short kind) {
  struct flock lock{};
  lock.l_type = kind;
  lock.l_whence = SEEK_SET;
  lock.l_start = from;
  lock.l_len = count;
  return lock;
}

}  // namespace

LockFile::LockFile(const char* directory, const char* name) : is_needed_(directory != nullptr) {
  if (!is_needed_) return;
  (void)std::snprintf(path_.data(), path_.size(), "%s/%s", directory, name);
}

bool LockFile::is_there() {
  if (!is_needed_ || why_not_ != 0) return false;
  if (inode_ != 0 && inode_of_file(file_) == inode_) return true;
  ++generation_;
  file_ = ::open(path_.data(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file_ < 0) why_not_ = errno;
  inode_ = inode_of_file(file_);
  return file_ >= 0;
}

bool LockFile::set(off_t from, off_t count, short kind) {
  if (!is_there()) return true;
  struct flock lock = lock_of(from, count, kind);
  if (::fcntl(file_, F_SETLK, &lock) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  why_not_ = errno;
  (void)::close(file_);  // nobody is to wait for what it had locked
  return true;
}

std::optional<LockFile::Lock> LockFile::find(off_t from, off_t to) {
  if (from >= to || !is_there()) return std::nullopt;
  struct flock lock = lock_of(from, to - from, F_WRLCK);
  if (::fcntl(file_, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return std::nullopt;
  return Lock{.process = lock.l_pid, .from = std::max(lock.l_start, from), .bytes = lock.l_len};
}

/// The kernel tells of one lock in a range, whichever: it is asked for what is before that.
std::optional<off_t> LockFile::first(off_t from, off_t to) {
  std::optional<off_t> first;
  for (auto found = find(from, to); found; found = find(from, *first)) first = found->from;
  return first;
}

}  // namespace gflow::interpose
