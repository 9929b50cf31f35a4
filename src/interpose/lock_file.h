// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>

namespace gflow::interpose {

/// An empty file whose bytes processes lock as fcntl(2) has it: the kernel takes them from one that
/// dies. One thread, and one object of a file in a process, as locks are the process's.
class LockFile {
 public:
  /// "DIRECTORY/NAME", opened when it is first wanted. Null: there is none.
  LockFile(const char* directory, const char* name);

  /// What is locked by somebody else.
  struct Lock {
    pid_t process = 0;  ///< 0: one of another pid namespace
    off_t from = 0;
    off_t bytes = 0;
  };

  /// False if there is no file, or it cannot be used. Opens it again if the program has closed what
  /// it does not know; what was locked is not any more then.
  [[nodiscard]] bool is_there();
  /// Another number: what was locked is not any more.
  [[nodiscard]] std::uint32_t generation() const { return generation_; }

  /// `kind` is F_RDLCK, F_WRLCK or F_UNLCK. False if others have one of the bytes. Never waits.
  bool set(off_t from, off_t count, short kind);
  /// What others have of the bytes: of one process, whichever; empty if nothing.
  [[nodiscard]] std::optional<Lock> find(off_t from, off_t to);
  /// The first of the bytes that others have.
  [[nodiscard]] std::optional<off_t> first(off_t from, off_t to);

  /// What it cannot be used for, as errno(3) has it; 0 if it can. It stays so.
  [[nodiscard]] int why_not() const { return why_not_; }
  [[nodiscard]] const char* path() const { return path_.data(); }

 private:
  std::array<char, 4096> path_{};
  int file_ = -1;
  ino_t inode_ = 0;
  std::uint32_t generation_ = 0;
  bool is_needed_;
  int why_not_ = 0;
};

}  // namespace gflow::interpose
