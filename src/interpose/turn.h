// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "interpose/line.h"
#include "interpose/lock_file.h"

namespace gflow::interpose {

/// Who uses a device: of all processes of all jobs with a part of it, one at a time, and of those
/// who want it the one whose job has made the least progress (nanoseconds: share::DeviceAccount).
///
/// Locks of a file beside the account: nobody can spoil more of it than keep them. Who wants the
/// device stands in line with its progress, and stays there while it has it. Where a process keeps
/// the device that is stopped, the others have the next place for theirs. One thread.
class Turn {
 public:
  static constexpr std::size_t kPlaces = 4;

  /// By this file of the directory; it is opened when it is first wanted. Null: the device is used
  /// without.
  Turn(const char* directory, const char* name);
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  /// To the line of one place. It has and stands in none.
  void go_to(std::size_t place);
  [[nodiscard]] std::size_t place() const { return place_; }
  /// Not beside one that did not give it back.
  [[nodiscard]] bool is_in_first_place() const { return place_ == 0; }
  /// Of that place.
  [[nodiscard]] Line& line() { return line_; }

  /// True if it is this process's now, which stands in its line, or cannot be had, as why_not()
  /// tells then. False if another has it, or stands before. Never waits.
  [[nodiscard]] bool try_take();
  /// The same whoever stands before.
  [[nodiscard]] bool try_take_first();
  /// What is this process's is so anew: another Holder.
  void renew();
  /// What the file cannot be used for, as errno(3) has it; 0 if it can. It stays so.
  [[nodiscard]] int why_not() const { return file_.why_not(); }
  [[nodiscard]] const char* path() const { return file_.path(); }
  /// And the place in the line.
  void give_back();

  /// Who has it now, and with what progress it took it: two that differ are two turns.
  struct Holder {
    pid_t process = 0;  ///< 0: nobody, or a process of another pid namespace
    off_t bytes = 0;    ///< 0: nobody
    [[nodiscard]] bool is_nobody() const { return bytes == 0; }
    friend bool operator==(const Holder&, const Holder&) = default;
  };
  [[nodiscard]] Holder holder();

  // Of jobs with parts of several devices (gathering.h).

  /// Those who want this one and others, with their progress, until they have all of them.
  [[nodiscard]] Line& gangs() { return gangs_; }
  /// Those of the line who would not take it yet, as they wait for others.
  [[nodiscard]] Line& biding() { return biding_; }

 private:
  LockFile file_;
  std::size_t place_ = 0;
  Line line_;
  Line gangs_;
  Line biding_;
};

}  // namespace gflow::interpose
