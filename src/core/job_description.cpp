// SPDX-License-Identifier: Apache-2.0
#include "core/job_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/text.h"
#include "base/translate.h"
#include "base/utf8.h"

namespace gflow {
namespace {

/// What a range is about; nothing for what is not a number.
template <class T>
std::optional<std::int64_t> number_in(const T& value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::int64_t>(value);
  } else if constexpr (std::is_same_v<T, Memory>) {
    return value.bytes;
  } else if constexpr (std::is_same_v<T, Share>) {
    return value.parts;
  } else if constexpr (requires { value.count(); }) {
    return value.count();
  } else if constexpr (requires { number_in(*value); }) {
    return value ? number_in(*value) : std::nullopt;
  } else {
    return std::nullopt;
  }
}

std::size_t length_of(const std::string& text) { return text.size(); }
std::size_t length_of(const Label& label) { return std::max(label.key.size(), label.value.size()); }

std::size_t bytes_in(const std::string& text) { return text.size(); }
std::size_t bytes_in(const Label& label) { return label.key.size() + label.value.size(); }
template <class T>
std::size_t bytes_in(const std::vector<T>& list) {
  std::size_t bytes = 0;
  for (const T& one : list) bytes += bytes_in(one);
  return bytes;
}

template <class T>
constexpr bool kIsText =
    std::is_same_v<T, std::string> || std::is_same_v<T, std::vector<std::string>> ||
    std::is_same_v<T, std::vector<Label>>;

/// A text whose length nobody bounds would be kept for every job and shown in every list.
template <Described T>
consteval bool all_texts_are_limited() {
  return std::apply(
      [](const auto&... rows) {
        const auto is_limited = [](const auto& row) {
          using Field = typename std::remove_cvref_t<decltype(row)>::Value;
          if constexpr (Described<Field>) return all_texts_are_limited<Field>();
          return !kIsText<Field> || row.max_bytes > 0;
        };
        return (is_limited(rows) && ...);
      },
      Description<T>::kFields);
}
static_assert(all_texts_are_limited<JobSpec>());

Result<void> check_range(const FieldInfo& row, std::int64_t number) {
  if (row.range.contains(number)) return {};
  return fail(Code::Usage,
              tr_format("{} {} is not between {} and {}",
                        field_label(row.name),
                        number,
                        row.range.least,
                        row.range.most));
}

Result<void> check_length(const FieldInfo& row, std::size_t bytes) {
  if (bytes <= row.max_bytes) return {};
  return fail(
      Code::Usage,
      tr_format(
          "its {} has {} bytes; the maximum is {}", field_label(row.name), bytes, row.max_bytes));
}

Result<void> check_characters(const FieldInfo& row, std::string_view text) {
  const std::size_t count = row.max_characters == 0 ? 0 : utf8::length(text);
  if (count <= row.max_characters) return {};
  return fail(Code::Usage,
              tr_format("its {} has {} characters; the maximum is {}",
                        field_label(row.name),
                        count,
                        row.max_characters));
}

Result<void> check_letters(const FieldInfo& row, std::string_view text) {
  if (row.letters == Letters::Any) return {};
  if (!is_utf8(text)) {
    return fail(Code::Usage,
                tr_format("its {} is not UTF-8: '{}'", field_label(row.name), printable(text)));
  }
  if (const auto unseen = first_unseen(text)) {
    return fail(Code::Usage,
                tr_format("its {} has only characters that can be seen, not U+{:04X}",
                          field_label(row.name),
                          static_cast<std::uint32_t>(*unseen)));
  }
  if (row.letters == Letters::Name || trim(text) == text) return {};
  return fail(Code::Usage,
              trim(text).empty() ? tr_format("its {} is blank", field_label(row.name))
                                 : tr_format("its {} begins or ends with a blank: '{}'; write '{}'",
                                             field_label(row.name),
                                             printable(text),
                                             printable(trim(text))));
}

template <class T>
Result<void> check_field(const FieldInfo& row, const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    GF_CHECK(check_characters(row, value));
    GF_CHECK(check_length(row, value.size()));
    return check_letters(row, value);
  } else if constexpr (kIsText<T>) {
    for (const auto& one : value) GF_CHECK(check_length(row, length_of(one)));
    if (value.size() <= kMaxLabels) return {};
    return fail(
        Code::Usage,
        tr_format(
            "its {} are {}; the maximum is {}", field_label(row.name), value.size(), kMaxLabels));
  } else {
    const auto number = number_in(value);
    return number ? check_range(row, *number) : Result<void>();
  }
}

}  // namespace

Result<void> check_fields(const JobSpec& spec) {
  Result<void> checked;
  each_leaf(
      [&checked](const auto& row, const auto& value) {
        if (checked) checked = check_field(row, value);
      },
      spec);
  return checked;
}

std::size_t bytes_of(const JobSpec& spec) {
  std::size_t bytes = 0;
  each_leaf(
      [&bytes](const auto& /*row*/, const auto& value) {
        if constexpr (kIsText<std::remove_cvref_t<decltype(value)>>) bytes += bytes_in(value);
      },
      spec);
  return bytes;
}

void hide_private(JobSpec& spec) {
  static const JobSpec empty;
  each_leaf(
      [](const auto& row, auto& value, const auto& nothing) {
        if (row.sight == Sight::Owner) value = nothing;
      },
      spec,
      empty);
}

void hide_names(JobSpec& spec) {
  each_alias(spec, [](std::string& text, std::string_view /*alias*/) { text.clear(); });
}

}  // namespace gflow
