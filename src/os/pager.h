// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gflow::os {

/// A pager, a line of the shell such as "less -FRX", and what it is given to read. Ctrl-C is its
/// business while it lives, and so is how much it reads.
class Pager {
 public:
  /// Errors: what the system said.
  [[nodiscard]] static Result<Pager> start(const std::string& command);
  ~Pager();
  Pager(Pager&&) noexcept;
  Pager& operator=(Pager&&) = delete;
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;

  /// False once it reads no more.
  [[nodiscard]] bool write(std::string_view text);
  /// Returns when it has ended. Errors: NotFound if there is no such program, which may have taken
  /// some of the text for all that.
  [[nodiscard]] Result<void> end();

 private:
  class SignalsAside;
  Pager(std::FILE* pipe, std::string command);

  std::FILE* pipe_;
  std::string command_;
  std::unique_ptr<SignalsAside> aside_;
};

}  // namespace gflow::os
