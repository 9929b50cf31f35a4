// SPDX-License-Identifier: Apache-2.0
#include "base/kept_sentence.h"

#include <fmt/args.h>

#include <optional>
#include <vector>

#include "base/text.h"

namespace gflow {
namespace {

constexpr std::string_view kPlaceholder = "{}";
constexpr std::string_view kSeparator = "; ";

/// The text between the placeholders of a sentence: one piece more than there are placeholders.
std::vector<std::string_view> pieces_of(std::string_view sentence) {
  std::vector<std::string_view> pieces;
  for (auto at = sentence.find(kPlaceholder); at != std::string_view::npos;
       at = sentence.find(kPlaceholder)) {
    pieces.push_back(sentence.substr(0, at));
    sentence.remove_prefix(at + kPlaceholder.size());
  }
  pieces.push_back(sentence);
  return pieces;
}

/// What stands for the placeholders where the text is that sentence.
std::optional<std::vector<std::string_view>> values_in(std::string_view text,
                                                       std::string_view sentence) {
  const std::vector<std::string_view> pieces = pieces_of(sentence);
  if (!text.starts_with(pieces.front())) return std::nullopt;
  text.remove_prefix(pieces.front().size());
  std::vector<std::string_view> values;
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    const bool is_last = i + 1 == pieces.size();
    if (is_last && !text.ends_with(pieces[i])) return std::nullopt;
    const std::size_t end = is_last ? text.size() - pieces[i].size() : text.find(pieces[i]);
    if (end == std::string_view::npos || end == 0) return std::nullopt;
    values.push_back(text.substr(0, end));
    text.remove_prefix(end + pieces[i].size());
  }
  if (!text.empty()) return std::nullopt;
  if (pieces.front().empty() && !parse_number(values.front())) return std::nullopt;
  return values;
}

std::string in_language(std::string_view sentence, const std::vector<std::string_view>& values) {
  fmt::dynamic_format_arg_store<fmt::format_context> store;
  for (const std::string_view value : values) store.push_back(kept_text(value));
  return detail::format_either(detail::translation_of(sentence, 1), sentence, store);
}

std::optional<std::string> one_sentence(std::string_view text) {
  for (const KeptSentence& sentence : kKeptSentences) {
    if (const auto values = values_in(text, sentence.text)) {
      return in_language(sentence.text, *values);
    }
  }
  return std::nullopt;
}

}  // namespace

bool is_kept(std::string_view text, Kept which) {
  return values_in(text, kKeptSentences.at(static_cast<std::size_t>(which)).text).has_value();
}

std::string kept_text(std::string_view text) {
  if (messages_in_use() == nullptr) return std::string(text);
  if (auto known = one_sentence(text)) return *std::move(known);
  std::string all;
  for (std::string_view rest = text;;) {
    const std::size_t end = rest.find(kSeparator);
    const auto known = one_sentence(rest.substr(0, end));
    if (!known) return std::string(text);
    all += (all.empty() ? "" : tr(kSeparator)) + *known;
    if (end == std::string_view::npos) return all;
    rest.remove_prefix(end + kSeparator.size());
  }
}

}  // namespace gflow
