// SPDX-License-Identifier: Apache-2.0
#include "command/paged_text.h"

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <utility>

#include "base/text.h"
#include "os/terminal.h"
#include "os/user.h"

namespace gflow::cli {

namespace {

// Beyond what a pipe holds and nobody has read.
constexpr std::size_t kKept = std::size_t{1} << 18;

// Where PAGER is not set and less is not there, the text itself is better than nothing.
std::string pager_command() {
  return os::environment("PAGER").value_or(
      "command -v less >/dev/null || exit 127; exec less -FRX");
}

}  // namespace

bool PagedText::write(std::string_view text) {
  if (way_ == Way::Output) return write_out(text);
  if (way_ == Way::Pager) return write_to_pager(text);
  kept_ += text;
  decide();
  if (way_ == Way::Undecided) return true;
  const std::string first = std::exchange(kept_, {});
  return way_ == Way::Pager ? write_to_pager(first) : write_out(first);
}

void PagedText::end() {
  if (!pager_ || leave_pager()) write_out(kept_);
  kept_.clear();
}

void PagedText::decide() {
  const std::string command = pager_command();
  if (!context_.pager || trim(command).empty()) {
    way_ = Way::Output;
    return;
  }
  if (std::ranges::count(kept_, '\n') < os::terminal_size(1).rows) return;
  context_.out.flush();
  auto pager = os::Pager::start(command);
  way_ = pager ? Way::Pager : Way::Output;
  if (pager) pager_.emplace(*std::move(pager));
}

bool PagedText::write_to_pager(std::string_view text) {
  if (kept_.size() <= kKept) kept_ += text;
  if (pager_->write(text)) return true;
  if (!leave_pager()) return false;
  return write_out(std::exchange(kept_, {}));
}

bool PagedText::leave_pager() {
  const bool is_there = pager_->end().has_value();
  pager_.reset();
  way_ = Way::Output;
  if (is_there || kept_.size() > kKept) kept_.clear();
  return !is_there;
}

bool PagedText::write_out(std::string_view text) {
  context_.out << text << std::flush;
  return context_.out.good();
}

}  // namespace gflow::cli
