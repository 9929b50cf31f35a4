// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "command/context.h"
#include "os/pager.h"

namespace gflow::cli {

/// A text for a screen, in pieces: to the output, in a pager where a person would have to scroll
/// for its top. Of a text that goes on it keeps what fits the screen, and what a pager that is not
/// there may have taken.
class PagedText {
 public:
  explicit PagedText(Context& context) : context_(context) {}
  ~PagedText() { end(); }
  PagedText(const PagedText&) = delete;
  PagedText& operator=(const PagedText&) = delete;

  /// False once nobody reads any more.
  [[nodiscard]] bool write(std::string_view text);
  /// Writes what it kept, and returns when the pager has ended.
  void end();

 private:
  enum class Way { Undecided, Pager, Output };
  void decide();
  [[nodiscard]] bool write_to_pager(std::string_view text);
  /// Without the pager: true if there is none of that name, and all of its text was kept.
  [[nodiscard]] bool leave_pager();
  bool write_out(std::string_view text);

  Context& context_;
  Way way_ = Way::Undecided;
  std::string kept_;
  std::optional<os::Pager> pager_;
};

}  // namespace gflow::cli
