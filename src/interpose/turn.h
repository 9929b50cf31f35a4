// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace gflow::interpose {

/// Who uses a device: of all processes of all jobs with a part of it, one at a time, and of those
/// who want it the one whose job has made the least progress (nanoseconds: share::DeviceAccount).
///
/// Locks of the file beside the account, as fcntl(2) has them: the kernel takes them from a process
/// that dies, and nobody can spoil more of it than keep them. Who wants the device stands in line
/// with the byte of its progress, and stays there while it has it. Where a process keeps the device
/// that is stopped, the others have the next place for theirs. One thread.
class Turn {
 public:
  static constexpr std::size_t kPlaces = 4;

  /// In this directory; it is opened when it is first wanted. Null: the device is used without.
  explicit Turn(const char* directory);

  /// To the line of one place. It has and stands in none.
  void go_to(std::size_t place);
  /// Not beside one that did not give it back.
  [[nodiscard]] bool is_in_first_place() const { return place_ == 0; }
  /// The progress of the first of the others in line; empty if nobody stands there.
  [[nodiscard]] std::optional<std::uint64_t> first();
  /// Another time: somewhere else in it.
  void stand_in_line(std::uint64_t progress);
  void leave_line();

  /// True if it is this process's now, which stands in its line, or cannot be had, as why_not()
  /// tells then. False if another has it, or stands before. Never waits.
  [[nodiscard]] bool try_take();
  /// What the file cannot be used for, as errno(3) has it; 0 if it can. It stays so.
  [[nodiscard]] int why_not() const { return why_not_; }
  [[nodiscard]] const char* path() const { return path_.data(); }
  /// And the place in the line.
  void give_back();

  /// Whether others stand in line; whether one does that has made less progress than that.
  [[nodiscard]] bool is_wanted() { return is_wanted_before(kEnd); }
  [[nodiscard]] bool is_wanted_before(std::uint64_t progress);

  /// Who has it now, and with what progress it took it: two that differ are two turns.
  struct Holder {
    pid_t process = 0;  ///< 0: nobody, or a process of another pid namespace
    off_t bytes = 0;    ///< 0: nobody
    [[nodiscard]] bool is_nobody() const { return bytes == 0; }
    friend bool operator==(const Holder&, const Holder&) = default;
  };
  [[nodiscard]] Holder holder();
  /// Does not wait for the first in line any more, until it has left.
  void pass_first();

 private:
  static constexpr std::uint64_t kEnd = ~std::uint64_t{0};
  static constexpr off_t kNone = -1;

  /// The file, opened again if the program has closed what it does not know; -1 if there is none.
  int file();
  /// False if others have one of the bytes.
  bool set(off_t from, off_t count, short kind);
  /// What others have of the bytes: of one process, whichever; empty if nothing.
  [[nodiscard]] std::optional<Holder> find(off_t from, off_t to, off_t* at = nullptr);
  /// The byte of the first of the others in line who are waited for.
  [[nodiscard]] std::optional<off_t> first_byte();
  [[nodiscard]] std::optional<off_t> first_byte(off_t from, off_t to);
  /// Whether one of them stands before the byte.
  [[nodiscard]] bool is_one_before(off_t byte);

  std::array<char, 4096> path_{};
  int file_ = -1;
  ino_t inode_ = 0;
  std::size_t place_ = 0;
  off_t own_ = kNone;      ///< the byte of its progress, where it stands
  off_t passed_from_ = 0;  ///< who stands from this byte on
  off_t passed_to_ = 0;    ///< to before that one is not waited for
  bool is_needed_;
  int why_not_ = 0;
};

}  // namespace gflow::interpose
