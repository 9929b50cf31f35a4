// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <charconv>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/field_filter.h"
#include "api/json_names.h"
#include "base/id.h"
#include "base/memory.h"
#include "base/share.h"
#include "base/time.h"
#include "core/description.h"

namespace gflow::api {

/// A T that is written or one that is read: the field lists take both.
template <typename T, typename U>
concept Like = std::same_as<std::remove_const_t<T>, U>;

/// What the schema of a T within documents is called, said beside its fields.
template <typename T>
inline constexpr std::string_view kSchemaName{};

/// What a number that is no whole one may be.
struct Bounds {
  enum class Least { Included, Excluded };
  double least = 0;
  double most = 1;
  Least at = Least::Included;
};
/// Words a text is one of.
using Words = std::span<const std::string_view>;

/// JSON text, written as it is.
struct Verbatim {
  std::string json;
};

/// Writes one JSON object, field by field. The counterpart of Reader: a function template
/// `fields(io, value)` lists the fields of a type once, for both.
class Writer {
 public:
  /// The whole document: apiVersion, kind, then the fields.
  template <typename T>
  [[nodiscard]] static std::string document(std::string_view kind, const T& value) {
    Writer writer;
    writer.open_document(kind);
    fields(writer, value);
    writer.out_ += '}';
    return std::move(writer.out_);
  }

  /// A value as it stands within a document.
  template <typename T>
  [[nodiscard]] static Verbatim verbatim(const T& value) {
    Writer writer;
    writer.put(value);
    return {std::move(writer.out_)};
  }
  /// The same with only some of its fields.
  template <typename T>
  [[nodiscard]] static Verbatim verbatim(const T& value, const FieldFilter& filter) {
    Writer writer;
    writer.filter_ = &filter;
    writer.put(value);
    return {std::move(writer.out_)};
  }

  template <typename T>
  void field(std::string_view name, const T& value, Range /*range*/ = {}) {
    const FieldFilter* const outer = filter_;
    const FieldFilter* const inner = outer == nullptr ? nullptr : outer->find(name);
    if (outer != nullptr && inner == nullptr) return;
    filter_ = inner;
    key(name);
    put(value);
    filter_ = outer;
  }
  template <typename T>
  void required(std::string_view name, const T& value, Range /*range*/ = {}) {
    field(name, value);
  }
  /// Left out where there is none.
  template <typename T>
  void if_any(std::string_view name, const std::optional<T>& value) {
    if (value) field(name, *value);
  }
  /// Elements of which the caller may have chosen the fields.
  template <typename T>
  void selection(std::string_view name, const std::vector<T>& value) {
    field(name, value);
  }
  /// Text that need not be UTF-8: a path, what somebody typed.
  template <typename T>
  void bytes(std::string_view name, const T& value) {
    field(name, value);
  }
  template <typename T>
  void content(std::string_view name, const T& value) {
    field(name, value);
  }
  /// Required, not empty, and of so many at most.
  template <typename T>
  void some(std::string_view name, const std::vector<T>& value, std::size_t /*most*/ = SIZE_MAX) {
    field(name, value);
  }
  template <typename T>
  void some_bytes(std::string_view name, const std::vector<T>& value) {
    field(name, value);
  }
  template <typename T>
  void defaulted(std::string_view name, const T& value, Range /*range*/ = {}) {
    field(name, value);
  }
  void between(std::string_view name, const double& value, Bounds /*bounds*/) {
    field(name, value);
  }
  void choice(std::string_view name, const std::string& value, Words /*words*/) {
    field(name, value);
  }
  /// "" is not known, which is null.
  void known_text(std::string_view name, const std::string& value);
  /// 0 is not known, which is null.
  void known_amount(std::string_view name, const Memory& value) {
    field(name, value.bytes == 0 ? std::nullopt : std::optional(value));
  }
  void known_amount(std::string_view name, const int& value) {
    field(name, value == 0 ? std::nullopt : std::optional(value));
  }
  /// An object of texts.
  void text_map(std::string_view name,
                const std::vector<std::pair<std::string, std::string>>& texts);
  /// Follows from another field: written for those who read JSON, ignored when read.
  template <typename T>
  void derived(std::string_view name, const T& value) {
    field(name, value);
  }

 private:
  void open_document(std::string_view kind);
  void key(std::string_view name);
  void put_string(std::string_view text);
  void put_character(char32_t point, std::string_view bytes);

  void put(const char* text) = delete;  // would be taken for a bool
  void put(const Verbatim& text) { out_ += text.json; }
  void put(bool value) { out_ += value ? "true" : "false"; }
  void put(const std::string& text) { put_string(text); }
  void put(std::string_view text) { put_string(text); }
  template <std::integral T>
  void put(T value) {
    std::array<char, std::numeric_limits<T>::digits10 + 2> digits{};  // and a sign
    const auto end = std::to_chars(digits.begin(), digits.end(), value).ptr;
    out_.append(digits.begin(), end);
  }
  void put(double value);
  template <typename T>
    requires std::is_enum_v<T>
  void put(T value) {
    put_string(json_name(value));
  }
  template <typename Tag>
  void put(Id<Tag> id) {
    put(id.value);
  }
  void put(Memory memory) { put(memory.bytes); }
  void put(Share share) { put(share.parts); }
  void put(std::chrono::seconds duration) { put(duration.count()); }
  void put(std::chrono::milliseconds duration);
  void put(WallTime time);
  template <typename T>
  void put(const std::optional<T>& value) {
    if (value) {
      put(*value);
    } else {
      out_ += "null";
    }
  }
  template <typename T>
  void put(const std::vector<T>& values) {
    out_ += '[';
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i != 0) out_ += ',';
      put(values[i]);
    }
    out_ += ']';
  }
  template <typename T>
    requires std::is_class_v<T>
  void put(const T& value) {
    out_ += '{';
    fields(*this, value);
    out_ += '}';
  }

  std::string out_;
  const FieldFilter* filter_ = nullptr;  ///< of the object being written; null: everything
};

}  // namespace gflow::api
