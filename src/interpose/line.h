// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "interpose/lock_file.h"

namespace gflow::interpose {

/// A line of processes, as a stretch of a LockFile: each stands there with the byte of its job's
/// progress (nanoseconds: share::DeviceAccount), those with less before those with more. One
/// thread.
class Line {
 public:
  static constexpr off_t kStretch = off_t{1} << 59;               ///< of the file
  static constexpr std::uint64_t kStep = std::uint64_t{1} << 16;  ///< progress that is a byte

  /// The line whose stretch begins there.
  Line(LockFile& file, off_t start) : file_(file), start_(start) {}
  /// To another one. It stands in none then.
  void move_to(off_t start);

  /// Another time: somewhere else in it.
  void stand(std::uint64_t progress);
  void leave();
  /// Where it stands; empty if it does not.
  [[nodiscard]] std::optional<off_t> own();

  /// The progress of the first of the others; empty if nobody stands there.
  [[nodiscard]] std::optional<std::uint64_t> first();
  /// The same of those who do not stand at the same place of another line as well.
  [[nodiscard]] std::optional<std::uint64_t> first_but(Line& other);
  /// Whether one of the others stands before one with so much progress.
  [[nodiscard]] bool is_one_before(std::uint64_t progress);
  [[nodiscard]] bool is_one_before_own();
  [[nodiscard]] bool is_anyone();

  /// Does not wait for the first of the others any more, or for who stands there, until that place
  /// is left. Of so many at a time.
  static constexpr std::size_t kMostPassed = 16;
  void pass_first();
  void pass(std::uint64_t progress);

 private:
  template <typename Visit>
  bool any_waited_for(off_t from, off_t to, Visit visit) const;
  void forget_gone();
  [[nodiscard]] std::optional<off_t> first_byte(off_t from);
  [[nodiscard]] bool is_before(off_t byte);

  LockFile& file_;
  off_t start_;
  std::optional<off_t> own_;
  std::uint32_t stood_in_ = 0;               ///< the generation of the file where it does
  std::array<off_t, kMostPassed> passed_{};  ///< who stands there is not waited for; ascending
  std::size_t passed_count_ = 0;
};

}  // namespace gflow::interpose
