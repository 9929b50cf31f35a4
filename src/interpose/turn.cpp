// SPDX-License-Identifier: Apache-2.0
#include "interpose/turn.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "share/account_file.h"

namespace gflow::interpose {
namespace {

constexpr off_t use_of(std::size_t place) { return static_cast<off_t>(2 * place); }
/// Shared by who stands in it.
constexpr off_t line_of(std::size_t place) { return use_of(place) + 1; }

/// 0 if there is no such descriptor. Past the C library: older ones have no function of that name.
ino_t inode_of(int file) {
  struct stat facts{};
  return file >= 0 && ::syscall(SYS_fstat, file, &facts) == 0 ? facts.st_ino : 0;
}

}  // namespace

Turn::Turn(const char* directory) : is_needed_(directory != nullptr) {
  if (!is_needed_) return;
  (void)std::snprintf(path_.data(), path_.size(), "%s/%s", directory, share::kTurnName);
}

int Turn::file() {
  if (!is_needed_ || why_not_ != 0) return -1;
  if (inode_ != 0 && inode_of(file_) == inode_) return file_;
  file_ = ::open(path_.data(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file_ < 0) why_not_ = errno;
  inode_ = inode_of(file_);
  return file_;
}

bool Turn::set(off_t byte, short kind) {
  struct flock lock{};
  lock.l_type = kind;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  if (::fcntl(file(), F_SETLK, &lock) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  why_not_ = errno;
  return true;
}

bool Turn::try_take(std::size_t place) {
  place_ = place;
  return file() < 0 || set(use_of(place), F_WRLCK);
}

void Turn::give_back() {
  if (file() >= 0) (void)set(use_of(place_), F_UNLCK);
}

bool Turn::is_wanted() {
  if (file() < 0) return false;
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = line_of(place_);
  lock.l_len = 1;
  return ::fcntl(file_, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

void Turn::stand_in_line(std::size_t place) {
  if (file() >= 0) (void)set(line_of(place), F_RDLCK);
}

void Turn::leave_line(std::size_t place) {
  if (file() >= 0) (void)set(line_of(place), F_UNLCK);
}

}  // namespace gflow::interpose
