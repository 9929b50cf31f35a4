// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "interpose/lock_file.h"

namespace gflow::interpose {

/// A line of processes, as a stretch of a LockFile: each stands there with the byte of its job's
/// progress (nanoseconds: share::DeviceAccount), those with less before those with more. One
/// thread.
class Line {
 public:
  static constexpr off_t kStretch = off_t{1} << 59;  ///< of the file

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
  [[nodiscard]] bool is_one_before_but(std::uint64_t progress, Line& other);
  /// Whether one of the others stands before one with so much progress.
  [[nodiscard]] bool is_one_before(std::uint64_t progress);
  [[nodiscard]] bool is_one_before_own();
  [[nodiscard]] bool is_anyone();

  /// Does not wait for the first of the others any more, until it has left.
  void pass_first();

 private:
  [[nodiscard]] std::optional<off_t> first_byte();
  [[nodiscard]] std::optional<off_t> first_byte(off_t from, off_t to);
  [[nodiscard]] bool is_before(off_t byte);

  LockFile& file_;
  off_t start_;
  std::optional<off_t> own_;
  std::uint32_t stood_in_ = 0;  ///< the generation of the file where it does
  off_t passed_from_ = 0;       ///< who stands from this byte on
  off_t passed_to_ = 0;         ///< to before that one is not waited for
};

}  // namespace gflow::interpose
