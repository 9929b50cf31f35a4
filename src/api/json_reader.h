// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/json_names.h"
#include "api/json_value.h"
#include "api/json_writer.h"
#include "api/refusal.h"
#include "base/id.h"
#include "base/memory.h"
#include "base/result.h"
#include "base/share.h"
#include "base/time.h"

namespace gflow::api {

/// Where a value lies in its document.
struct Place {
  const Place* parent = nullptr;
  std::string_view name;                      ///< of a member
  std::optional<std::size_t> index;           ///< or of an element
  [[nodiscard]] std::string pointer() const;  ///< RFC 6901
};

/// Reads one JSON object, field by field; the counterpart of Writer. What is wrong is kept
/// with its JSON pointer, and what is read is used only if nothing is.
class Reader {
 public:
  /// A request: all that is wrong is told. A field that is not understood would silently not be
  /// obeyed, so it is refused.
  template <typename T>
  [[nodiscard]] static Asked<T> request(std::string_view json, std::string_view kind) {
    return document<T>(json, kind, Unknown::Refused);
  }
  /// What somebody kept: the first that is wrong. Newer ones may say more, which is ignored.
  template <typename T>
  [[nodiscard]] static Result<T> kept(std::string_view json, std::string_view kind) {
    auto read = document<T>(json, kind, Unknown::Ignored);
    if (!read) return fail(read.error().code, std::move(read.error().message));
    return std::move(*read);
  }
  /// An answer, in the same way. Errors: Failure, as nothing that was typed is wrong.
  template <typename T>
  [[nodiscard]] static Result<T> answer(std::string_view json, std::string_view kind) {
    auto read = kept<T>(json, kind);
    if (!read) return std::unexpected(no_answer(read.error().message));
    return read;
  }

  /// A field that is not there leaves `out` as it is.
  template <typename T>
  void field(std::string_view name, T& out, Range range = {}) {
    if (const Value* value = find(name)) take(Place{&place_, name, {}}, *value, out, range);
  }
  template <typename T>
  void required(std::string_view name, T& out, Range range = {}) {
    const Value* value = find(name);
    if (value == nullptr) return missing(name);
    take(Place{&place_, name, {}}, *value, out, range);
  }
  /// Whether the field is there; it is read then.
  template <typename T>
  [[nodiscard]] bool given(std::string_view name, T& out, Range range = {}) {
    const Value* value = find(name);
    if (value != nullptr) take(Place{&place_, name, {}}, *value, out, range);
    return value != nullptr;
  }
  template <typename T>
  void if_any(std::string_view name, std::optional<T>& out) {
    field(name, out);
  }
  /// Null is as good as not there.
  template <typename T>
  void defaulted(std::string_view name, T& out, Range range = {}) {
    const Value* value = find(name);
    if (value != nullptr && !value->is_null()) take(Place{&place_, name, {}}, *value, out, range);
  }
  template <typename T>
  void selection(std::string_view name, std::vector<T>& out) {
    required(name, out);
  }
  template <typename T>
  void bytes(std::string_view name, T& out) {
    is_long_ = true;
    field(name, out);
    is_long_ = false;
  }
  /// What a file has, which may be any bytes: other texts of a request have no NUL.
  template <typename T>
  void content(std::string_view name, T& out) {
    is_content_ = true;
    bytes(name, out);
    is_content_ = false;
  }
  /// Whether there are any, and not too many, is judged by who has words for it.
  template <typename T>
  void some(std::string_view name, std::vector<T>& out, std::size_t /*most*/ = SIZE_MAX) {
    required(name, out);
  }
  template <typename T>
  void some_bytes(std::string_view name, std::vector<T>& out) {
    is_long_ = true;
    required(name, out);
    is_long_ = false;
  }
  /// Within its bounds; null is as good as not there.
  void between(std::string_view name, double& out, Bounds bounds);
  /// What stands in an answer is not judged: a newer daemon may know more words.
  void choice(std::string_view name, std::string& out, Words /*words*/) { field(name, out); }
  void known_text(std::string_view name, std::string& out);
  template <typename T>
  void known_amount(std::string_view name, T& out) {
    std::optional<T> known = out;
    field(name, known);
    out = known.value_or(T{});
  }
  void text_map(std::string_view name, std::vector<std::pair<std::string, std::string>>& out);
  template <typename T>
  void derived(std::string_view name, const T& /*value*/) {
    (void)find(name);
  }

 private:
  enum class Unknown { Refused, Ignored };
  /// Shared by the readers of one document.
  struct Findings {
    Unknown unknown = Unknown::Refused;
    std::vector<FieldError> wrong{};
  };

  template <typename T>
  [[nodiscard]] static Asked<T> document(std::string_view json,
                                         std::string_view kind,
                                         Unknown unknown) {
    auto root = parse_json(json);
    if (!root) return std::unexpected(Refusal(std::move(root).error()));
    Findings findings{unknown};
    T value{};
    {
      Reader reader(findings, Place{}, *root);
      reader.check_document(kind);
      fields(reader, value);
      reader.finish();
    }
    if (!findings.wrong.empty()) return std::unexpected(Refusal(std::move(findings.wrong)));
    return value;
  }

  Reader(Findings& findings, const Place& place, const Value& value);
  void check_document(std::string_view kind);
  void finish();  ///< judges the fields nobody asked for

  [[nodiscard]] const Value* find(std::string_view name);
  void missing(std::string_view name);
  void refuse(const Place& place, std::string detail);
  void refuse_type(const Place& place, std::string_view expected, const Value& value);
  [[nodiscard]] std::int64_t integer(const Place& place, const Value& value, Range range);

  void take(const Place& place, const Value& value, bool& out, Range range);
  void take(const Place& place, const Value& value, std::string& out, Range range);
  void take(const Place& place, const Value& value, double& out, Range range);
  void take(const Place& place, const Value& value, std::chrono::milliseconds& out, Range range);
  void take(const Place& place, const Value& value, WallTime& out, Range range);
  template <std::integral T>
  void take(const Place& place, const Value& value, T& out, Range range) {
    using Limits = std::numeric_limits<T>;
    if (std::cmp_less(range.least, Limits::min())) range.least = std::int64_t{Limits::min()};
    if (std::cmp_greater(range.most, Limits::max())) {
      range.most = static_cast<std::int64_t>(Limits::max());
    }
    out = static_cast<T>(integer(place, value, range));
  }
  template <typename T>
    requires std::is_enum_v<T>
  void take(const Place& place, const Value& value, T& out, Range /*range*/) {
    std::string names;
    const std::string* text = value.as<std::string>();
    for (const T candidate : kValues<T>) {
      if (text != nullptr && *text == json_name(candidate)) {
        out = candidate;
        return;
      }
      names += names.empty() ? "" : ", ";
      names += json_name(candidate);
    }
    refuse_type(place, "one of " + names, value);
  }
  template <typename Tag>
  void take(const Place& place, const Value& value, Id<Tag>& out, Range /*range*/) {
    constexpr Range kIds = {1, (std::int64_t{1} << 62) - 1};
    out = Id<Tag>(static_cast<std::uint64_t>(integer(place, value, kIds)));
  }
  void take(const Place& place, const Value& value, Memory& out, Range range) {
    out = Memory{integer(place, value, range)};
  }
  void take(const Place& place, const Value& value, Share& out, Range range) {
    take(place, value, out.parts, range);
  }
  void take(const Place& place, const Value& value, std::chrono::seconds& out, Range range) {
    out = std::chrono::seconds(integer(place, value, range));
  }
  template <typename T>
  void take(const Place& place, const Value& value, std::optional<T>& out, Range range) {
    out.reset();
    if (!value.is_null()) take(place, value, out.emplace(), range);
  }
  template <typename T>
  void take(const Place& place, const Value& value, std::vector<T>& out, Range range) {
    out.clear();
    const auto* array = value.as<Value::Array>();
    if (array == nullptr) return refuse_type(place, "an array", value);
    out.reserve(array->size());
    for (std::size_t i = 0; i < array->size(); ++i) {
      take(Place{&place, {}, i}, (*array)[i], out.emplace_back(), range);
    }
  }
  template <typename T>
    requires std::is_class_v<T>
  void take(const Place& place, const Value& value, T& out, Range /*range*/) {
    Reader reader(findings_, place, value);
    fields(reader, out);
    reader.finish();
  }

  Findings& findings_;
  const Place place_;
  const Value::Object* object_ = nullptr;  // null if the value is not an object
  std::vector<std::string_view> asked_;    // every name a field was looked for by
  bool is_content_ = false;
  bool is_long_ = false;
};

}  // namespace gflow::api
