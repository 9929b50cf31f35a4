// SPDX-License-Identifier: Apache-2.0
#include "base/message_catalogue.h"

#include <cstring>

#include "base/translate.h"

namespace gflow {

namespace {

// The format is described in the manual of GNU gettext, "The Format of GNU MO Files".
constexpr std::uint32_t kMagic = 0x950412de;
constexpr std::size_t kEntry = 8;  // a length and an offset

/// A message with a plural stands as its singular, NUL, its plural: it is asked for by the
/// singular.
std::string_view first_form(std::string_view text) { return text.substr(0, text.find('\0')); }

}  // namespace

Result<MessageCatalogue> MessageCatalogue::read(std::string_view bytes) {
  MessageCatalogue catalogue;
  catalogue.bytes_ = bytes;
  if (bytes.size() < 20 || catalogue.number_at(0) != kMagic) {
    return fail(Code::Damaged, "not a catalogue of messages of this machine's byte order");
  }
  catalogue.size_ = catalogue.number_at(8);
  catalogue.english_ = catalogue.number_at(12);
  catalogue.translated_ = catalogue.number_at(16);
  for (const std::uint32_t table : {catalogue.english_, catalogue.translated_}) {
    if (table > bytes.size() || (bytes.size() - table) / kEntry < catalogue.size_) {
      return fail(Code::Damaged, "a catalogue of messages that ends too early");
    }
  }
  return catalogue;
}

std::string_view MessageCatalogue::find(std::string_view english, std::uint64_t count) const {
  std::uint32_t low = 0;
  std::uint32_t high = size_;
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    const int order = first_form(text_at(english_, middle)).compare(english);
    if (order == 0) {
      const std::string_view forms = text_at(translated_, middle);
      const std::string_view one = first_form(forms);
      // One form, as Chinese has, or two, of which the first is for 1, as English has.
      const bool has_two = one.size() < forms.size();
      return has_two && count != 1 ? first_form(forms.substr(one.size() + 1)) : one;
    }
    if (order < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return {};
}

std::string_view MessageCatalogue::language() const {
  constexpr std::string_view kField = "\nLanguage: ";
  // The translation of nothing is the head, a field a line.
  const std::string_view head = find("");
  const std::size_t field = head.find(kField);
  if (field == std::string_view::npos) return {};
  const std::string_view value = head.substr(field + kField.size());
  return value.substr(0, value.find('\n'));
}

std::uint32_t MessageCatalogue::number_at(std::size_t offset) const {
  std::uint32_t number = 0;
  std::memcpy(&number, bytes_.data() + offset, sizeof number);
  return number;
}

std::string_view MessageCatalogue::text_at(std::uint32_t table, std::uint32_t index) const {
  const std::size_t entry = table + index * kEntry;
  const std::size_t length = number_at(entry);
  const std::size_t offset = number_at(entry + 4);
  const bool is_inside = offset <= bytes_.size() && length <= bytes_.size() - offset;
  return is_inside ? bytes_.substr(offset, length) : std::string_view();
}

}  // namespace gflow
