// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>

#include "base/result.h"

namespace gflow::os {

/// Owns a file descriptor; closes it once. -1 is none.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { reset(); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// A second descriptor of the same open file (close-on-exec); none if there are too many.
[[nodiscard]] Fd duplicate(int fd);
/// Whether too many files are open, of this process or of the whole machine (EMFILE, ENFILE).
[[nodiscard]] bool is_out_of_files(const Error& error);
/// Whether so many more can be had at once. Errors: why not.
[[nodiscard]] Result<void> check_descriptors(std::size_t count);

}  // namespace gflow::os
