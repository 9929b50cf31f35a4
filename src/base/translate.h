// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/message_catalogue.h"

/// What people read, in their language. English is the source and what stands where a catalogue has
/// nothing. Programs that a person called have a catalogue; the daemon has none but for the time of
/// a request that asks for a language. `./dev check` fails on a message that po/zh_CN.po lacks.
namespace gflow {

/// The catalogue of this process from now on; null is English. It must outlive the process's
/// threads; set it before they start.
void set_messages(const MessageCatalogue* catalogue);
/// Messages of this thread in another language than the process's while it lives; null is English.
class MessagesOfThread {
 public:
  explicit MessagesOfThread(const MessageCatalogue* catalogue);
  ~MessagesOfThread();
  MessagesOfThread(const MessagesOfThread&) = delete;
  MessagesOfThread& operator=(const MessagesOfThread&) = delete;

 private:
  const MessageCatalogue* before_;
  bool was_set_;
};
/// What `make` returns in English.
template <typename Make>
[[nodiscard]] auto in_english(Make make) {
  const MessagesOfThread english(nullptr);
  return make();
}
/// The catalogue that messages of this thread are taken from; null is English.
[[nodiscard]] const MessageCatalogue* messages_in_use();

/// The message in the reader's language.
[[nodiscard]] std::string tr(std::string_view english);

/// Marks a message that stands in a constant and is translated where it is shown: tr(it).
consteval const char* tr_later(const char* english) { return english; }

namespace detail {
[[nodiscard]] std::string_view translation_of(std::string_view english, std::uint64_t count);
[[nodiscard]] std::string format_either(std::string_view translated,
                                        std::string_view english,
                                        fmt::format_args values);
}  // namespace detail

/// fmt::format in the reader's language. The English format is checked when compiled; a translation
/// whose placeholders do not fit is passed over for the English.
template <typename... Values>
[[nodiscard]] std::string tr_format(fmt::format_string<Values...> english, Values&&... values) {
  const fmt::string_view text = english;
  const std::string_view source(text.data(), text.size());
  return detail::format_either(
      detail::translation_of(source, 1), source, fmt::make_format_args(values...));
}

/// The same for a count: `one` if it is 1, else `many`; languages with other rules have their own.
template <typename... Values>
[[nodiscard]] std::string tr_count(std::uint64_t count,
                                   fmt::format_string<Values...> one,
                                   fmt::format_string<Values...> many,
                                   Values&&... values) {
  const fmt::string_view singular = one;
  const fmt::string_view plural = count == 1 ? one : many;
  return detail::format_either(
      detail::translation_of(std::string_view(singular.data(), singular.size()), count),
      std::string_view(plural.data(), plural.size()),
      fmt::make_format_args(values...));
}

}  // namespace gflow
