// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>

namespace gflow::interpose {

/// Who uses a device: of all processes of all jobs with a part of it, one at a time. A lock of the
/// file beside the account, as fcntl(2) has them: the kernel takes it from a process that dies, and
/// nobody can spoil more of it than keep it. Where a process keeps it that is stopped, the others
/// have the next place for theirs. One thread.
class Turn {
 public:
  static constexpr std::size_t kPlaces = 4;

  /// In this directory; it is opened when it is first wanted. Null: the device is used without.
  explicit Turn(const char* directory);

  /// True if it is this process's now, or cannot be had, as why_not() tells then. Never waits.
  [[nodiscard]] bool try_take(std::size_t place);
  /// What the file cannot be used for, as errno(3) has it; 0 if it can. It stays so.
  [[nodiscard]] int why_not() const { return why_not_; }
  [[nodiscard]] const char* path() const { return path_.data(); }
  void give_back();

  /// Whether another process stands in line for what this one has.
  [[nodiscard]] bool is_wanted();
  void stand_in_line(std::size_t place);
  void leave_line(std::size_t place);

 private:
  /// The file, opened again if the program has closed what it does not know; -1 if there is none.
  int file();
  /// False if others have the byte.
  bool set(off_t byte, short kind);

  std::array<char, 4096> path_{};
  int file_ = -1;
  ino_t inode_ = 0;
  std::size_t place_ = 0;  ///< of what this process has
  bool is_needed_;
  int why_not_ = 0;
};

}  // namespace gflow::interpose
