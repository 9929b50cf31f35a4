// SPDX-License-Identifier: Apache-2.0
#include "interpose/turn.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "share/account_file.h"

namespace gflow::interpose {
namespace {

/// Each place has two stretches of the file: of who uses the device, and of those in line for it.
constexpr off_t kStretch = off_t{1} << 59;
constexpr off_t use_of(std::size_t place) { return static_cast<off_t>(2 * place) * kStretch; }
constexpr off_t line_of(std::size_t place) { return use_of(place) + kStretch; }

/// One for each 65.5 microseconds of progress.
constexpr int kProgressBits = 16;
off_t byte_of(std::uint64_t progress) { return static_cast<off_t>(progress >> kProgressBits); }

/// 0 if there is no such descriptor. Past the C library: older ones have no function of that name.
ino_t inode_of(int file) {
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

Turn::Turn(const char* directory) : is_needed_(directory != nullptr) {
  if (!is_needed_) return;
  (void)std::snprintf(path_.data(), path_.size(), "%s/%s", directory, share::kTurnName);
}

int Turn::file() {
  if (!is_needed_ || why_not_ != 0) return -1;
  if (inode_ != 0 && inode_of(file_) == inode_) return file_;
  own_ = kNone;  // with the descriptor went what it had locked
  file_ = ::open(path_.data(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file_ < 0) why_not_ = errno;
  inode_ = inode_of(file_);
  return file_;
}

bool Turn::set(off_t from, off_t count, short kind) {
  struct flock lock = lock_of(from, count, kind);
  if (::fcntl(file(), F_SETLK, &lock) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  why_not_ = errno;
  (void)::close(file_);  // nobody is to wait for what it had locked
  return true;
}

std::optional<Turn::Holder> Turn::find(off_t from, off_t to, off_t* at) {
  if (from >= to || file() < 0) return std::nullopt;
  struct flock lock = lock_of(from, to - from, F_WRLCK);
  if (::fcntl(file_, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return std::nullopt;
  if (at != nullptr) *at = std::max(lock.l_start, from);
  return Holder{.process = lock.l_pid, .bytes = lock.l_len};
}

// -- the line

/// The kernel tells of one lock in a range, whichever: it is asked for what is before that.
std::optional<off_t> Turn::first_byte(off_t from, off_t to) {
  const off_t line = line_of(place_);
  std::optional<off_t> first;
  off_t at = line + to;
  while (find(line + from, at, &at)) first = at - line;
  return first;
}

std::optional<off_t> Turn::first_byte() {
  const off_t line = line_of(place_);
  if (!find(line + passed_from_, line + passed_to_)) passed_from_ = passed_to_ = 0;
  const auto first = first_byte(0, passed_from_);
  return first ? first : first_byte(passed_to_, kStretch);
}

bool Turn::is_one_before(off_t byte) {
  const off_t line = line_of(place_);
  return find(line, line + std::min(byte, passed_from_)) || find(line + passed_to_, line + byte);
}

void Turn::go_to(std::size_t place) {
  if (place != place_) passed_from_ = passed_to_ = 0;
  place_ = place;
}

std::optional<std::uint64_t> Turn::first() {
  const auto byte = first_byte();
  if (!byte) return std::nullopt;
  return static_cast<std::uint64_t>(*byte) << kProgressBits;
}

void Turn::stand_in_line(std::uint64_t progress) {
  const off_t byte = byte_of(progress);
  if (byte == own_ || file() < 0) return;
  leave_line();
  (void)set(line_of(place_) + byte, 1, F_RDLCK);
  own_ = byte;
}

void Turn::leave_line() {
  if (own_ != kNone && file() >= 0) (void)set(line_of(place_) + own_, 1, F_UNLCK);
  own_ = kNone;
}

bool Turn::is_wanted_before(std::uint64_t progress) {
  return is_one_before(progress == kEnd ? kStretch : byte_of(progress));
}

void Turn::pass_first() {
  const auto byte = first_byte();
  if (!byte) return;
  passed_from_ = passed_to_ == 0 ? *byte : std::min(passed_from_, *byte);
  passed_to_ = std::max(passed_to_, *byte + 1);
}

// -- the device

bool Turn::try_take() {
  if (file() < 0) return true;
  if (is_one_before(own_)) return false;
  return set(use_of(place_), own_ + 1, F_WRLCK);
}

Turn::Holder Turn::holder() { return find(use_of(place_), use_of(place_) + 1).value_or(Holder{}); }

void Turn::give_back() {
  if (file() < 0) return;
  (void)set(use_of(place_), kStretch, F_UNLCK);
  leave_line();
}

}  // namespace gflow::interpose
