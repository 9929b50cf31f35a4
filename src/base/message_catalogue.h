// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace gflow {

/// The messages of one language, as msgfmt writes them (a .mo file of GNU gettext, in UTF-8). Reads
/// them where they lie: the bytes must outlive it. Why not the C library's gettext:
/// docs/design/0011-messages-in-the-readers-language.md. Safe to read from any thread.
class MessageCatalogue {
 public:
  /// Errors: Code::Damaged where the bytes are no such file, or a table of it lies outside of it.
  [[nodiscard]] static Result<MessageCatalogue> read(std::string_view bytes);

  /// What stands for the English message; "" where it has none, or the file is wrong there. Of a
  /// message with a plural, the form for that count.
  [[nodiscard]] std::string_view find(std::string_view english, std::uint64_t count = 1) const;

  /// "zh_CN", as its head says; "" if it does not.
  [[nodiscard]] std::string_view language() const;

 private:
  [[nodiscard]] std::uint32_t number_at(std::size_t offset) const;
  /// The text that entry `index` of the table at `table` points at.
  [[nodiscard]] std::string_view text_at(std::uint32_t table, std::uint32_t index) const;

  std::string_view bytes_;
  std::uint32_t size_ = 0;     ///< messages
  std::uint32_t english_ = 0;  ///< where the sorted table of English messages begins
  std::uint32_t translated_ = 0;
};

}  // namespace gflow
