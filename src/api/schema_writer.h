// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeindex>
#include <typeinfo>
#include <utility>
#include <vector>

#include "api/json_names.h"
#include "api/json_text.h"
#include "api/json_writer.h"
#include "base/id.h"
#include "base/memory.h"
#include "base/share.h"
#include "base/time.h"
#include "core/description.h"
#include "core/text_limits.h"

namespace gflow::api {

/// What of a type stands in a document.
enum class Form {
  Request,  ///< what need not be given has a default; nothing else may be there
  Answer,   ///< all of it is there; readers ignore what they do not know
  Part,     ///< an answer of which the caller chose the fields
};

/// The schemas of a description: those of documents and of the objects within them, by name.
class Schemas {
 public:
  /// The document of this kind, with apiVersion and kind. `fields` lists what T has.
  template <typename T>
  void document(std::string_view kind, Form form, const T& sample = {});
  [[nodiscard]] const std::map<std::string, Value, std::less<>>& all() const { return named_; }
  /// Names that two types have: there are to be none.
  [[nodiscard]] const std::set<std::string>& shared_names() const { return shared_names_; }
  /// A reference to one.
  [[nodiscard]] static Value to(std::string_view name);
  /// Text that is bytes: a string, or what base64 says.
  [[nodiscard]] Value bytes();

 private:
  friend class SchemaWriter;
  template <typename T>
  struct Document {};  ///< not the same as a T within one
  /// Takes the name for this type. Whether it is the first time: its schema is to be made.
  [[nodiscard]] bool take(const std::string& name, std::type_index type);

  std::map<std::string, Value, std::less<>> named_;
  std::map<std::string, std::type_index> types_;
  std::set<std::string> shared_names_;
};

/// As what T may stand, each with its own fields. A type whose fields depend on its value says here
/// what there is.
template <typename T>
[[nodiscard]] std::vector<T> forms_of(std::type_identity<T> /*type*/) {
  return {T{}};
}

/// The third to Reader and Writer: goes through the field lists and says what they write and take,
/// as JSON Schema (2020-12). What a list is given are the defaults.
class SchemaWriter {
 public:
  /// The schema of an object. Objects within it stand in `schemas`, or where they are if it is
  /// null.
  template <typename T>
  [[nodiscard]] static Value object(const T& sample, Form form, Schemas* schemas) {
    SchemaWriter writer(form, schemas);
    fields(writer, sample);
    return writer.finish();
  }
  [[nodiscard]] static Value bytes_alone();

  template <typename T>
  void field(std::string_view name, const T& value, Range range = {}) {
    add(name, with_default(schema_of(value, range), value), form_ == Form::Answer);
  }
  template <typename T>
  void required(std::string_view name, const T& value, Range range = {}) {
    add(name, schema_of(value, range), true);
  }
  /// Of what is described: with what its row tells.
  template <typename Row, typename T>
  void described(const Row& row, const T& value);
  /// Of what is to be changed: what is not given stays.
  template <typename Row, typename T>
  void changeable(const Row& row, const T& value) {
    add(row.name, row_schema(row, value), false);
  }
  template <typename T>
  void if_any(std::string_view name, const std::optional<T>& value) {
    add(name, schema_of(value.value_or(T{}), {}), false);
  }
  template <typename T>
  void defaulted(std::string_view name, const T& value, Range range = {}) {
    add(name, with_default(nullable(schema_of(value, range)), value), form_ == Form::Answer);
  }
  template <typename T>
  void selection(std::string_view name, const std::vector<T>& value) {
    const Form outer = std::exchange(form_, Form::Part);
    Value schema = schema_of(value, {});
    form_ = outer;
    add(name, std::move(schema), true);
  }
  template <typename T>
  void bytes(std::string_view name, const T& value) {
    is_bytes_ = true;
    field(name, value);
    is_bytes_ = false;
  }
  template <typename T>
  void content(std::string_view name, const T& value) {
    bytes(name, value);
  }
  template <typename T>
  void some(std::string_view name, const std::vector<T>& value, std::size_t most = SIZE_MAX) {
    add(name, not_empty(schema_of(value, {}), most), true);
  }
  template <typename T>
  void some_bytes(std::string_view name, const std::vector<T>& value) {
    is_bytes_ = true;
    some(name, value);
    is_bytes_ = false;
  }
  void between(std::string_view name, const double& value, Bounds bounds);
  void choice(std::string_view name, const std::string& value, Words words);
  void known_text(std::string_view name, const std::string& value);
  template <typename T>
  void known_amount(std::string_view name, const T& /*value*/) {
    field(name, std::optional<T>());
  }
  void text_map(std::string_view name,
                const std::vector<std::pair<std::string, std::string>>& texts);
  template <typename T>
  void derived(std::string_view name, const T& value) {
    if (form_ != Form::Request) field(name, value);
  }

 private:
  SchemaWriter(Form form, Schemas* schemas) : form_(form), schemas_(schemas) {}
  void add(std::string_view name, Value schema, bool is_required);
  [[nodiscard]] Value finish();
  [[nodiscard]] Value bytes_schema() const;
  [[nodiscard]] static Value typed(std::string_view type);
  [[nodiscard]] static Value with_format(std::string_view type, std::string_view format);
  [[nodiscard]] static Value nullable(Value schema);
  [[nodiscard]] static Value not_empty(Value schema, std::size_t most);
  template <typename Row, typename T>
  [[nodiscard]] Value row_schema(const Row& row, const T& value);
  [[nodiscard]] Value number(Range range, Range of_type) const;

  template <typename T>
  [[nodiscard]] Value with_default(Value schema, const T& value) const;
  template <typename T>
  [[nodiscard]] Value schema_of(const T& value, Range range);
  template <typename T>
  [[nodiscard]] Value class_schema(const T& value);
  template <typename T>
  [[nodiscard]] Value enum_schema() const;

  Form form_;
  Schemas* schemas_;
  Members properties_;
  Value::Array required_;
  bool is_bytes_ = false;
};

namespace detail {

template <class T>
struct Inner;
template <class T>
struct Inner<std::vector<T>> {
  using Type = T;
};
template <class T>
struct Inner<std::optional<T>> {
  using Type = T;
};
template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;
template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class T>
inline constexpr bool kIsId = false;
template <class Tag>
inline constexpr bool kIsId<Id<Tag>> = true;

/// What is called so, as it stands in this form: a type that is shown may be asked for, too, with
/// other members. A view never is.
[[nodiscard]] std::string schema_name(std::string_view type, Form form);

}  // namespace detail

template <typename T>
Value SchemaWriter::enum_schema() const {
  Value::Array names;
  for (const T one : kValues<T>) names.push_back(json(json_name(one)));
  return Members().add("type", "string").add("enum", Value{std::move(names)}).value();
}

template <typename T>
Value SchemaWriter::class_schema(const T& value) {
  const auto made = [&]() -> Value {
    const std::vector<T> forms = forms_of(std::type_identity<T>());
    if (forms.size() == 1) return object(value, form_, schemas_);
    Value::Array each;
    for (const T& one : forms) each.push_back(object(one, form_, schemas_));
    return Members().add("oneOf", Value{std::move(each)}).value();
  };
  if (schemas_ == nullptr) return made();
  static_assert(!kSchemaName<T>.empty(), "say kSchemaName<T> beside the fields of T");
  const std::string name = detail::schema_name(kSchemaName<T>, form_);
  if (schemas_->take(name, typeid(T))) schemas_->named_.insert_or_assign(name, made());
  return Schemas::to(name);
}

template <typename T>
Value SchemaWriter::schema_of(const T& value, Range range) {
  constexpr Range kIds = {1, (std::int64_t{1} << 62) - 1};
  if constexpr (detail::kIsOptional<T>) {
    return nullable(schema_of(value.value_or(typename detail::Inner<T>::Type{}), range));
  } else if constexpr (detail::kIsVector<T>) {
    return Members()
        .add("type", "array")
        .add("items", schema_of(typename detail::Inner<T>::Type{}, range))
        .value();
  } else if constexpr (std::same_as<T, bool>) {
    return typed("boolean");
  } else if constexpr (std::same_as<T, std::string> || std::same_as<T, std::string_view>) {
    return is_bytes_ ? bytes_schema() : typed("string");
  } else if constexpr (std::same_as<T, WallTime>) {
    return with_format("string", "date-time");
  } else if constexpr (std::same_as<T, double> || std::same_as<T, std::chrono::milliseconds>) {
    return typed("number");
  } else if constexpr (std::is_enum_v<T>) {
    return enum_schema<T>();
  } else if constexpr (detail::kIsId<T>) {
    return number(kIds, kIds);
  } else if constexpr (std::same_as<T, Memory> || std::same_as<T, Share> ||
                       std::same_as<T, std::chrono::seconds>) {
    return number(range, {});
  } else if constexpr (std::integral<T>) {
    using Limits = std::numeric_limits<T>;
    constexpr std::int64_t kMost = std::cmp_greater(Limits::max(), INT64_MAX)
                                       ? INT64_MAX
                                       : static_cast<std::int64_t>(Limits::max());
    return number(range, {static_cast<std::int64_t>(Limits::min()), kMost});
  } else {
    return class_schema(value);
  }
}

template <typename T>
Value SchemaWriter::with_default(Value schema, const T& value) const {
  if (form_ != Form::Request) return schema;
  if constexpr (std::is_class_v<T> && !std::same_as<T, std::string> && !std::same_as<T, Memory> &&
                !std::same_as<T, Share> && !detail::kIsVector<T> && !detail::kIsOptional<T> &&
                !std::same_as<T, std::chrono::seconds>) {
    return schema;
  } else {
    auto standard = parse_json(Writer::verbatim(value).json);
    if (!standard) return schema;
    std::get<Value::Object>(schema.data).push_back({"default", std::move(*standard)});
    return schema;
  }
}

namespace detail {
/// Of values of a row, with what else the row tells.
[[nodiscard]] Value with_row(Value schema, const FieldInfo& row);
[[nodiscard]] Value with_change(Value schema, Change change);
[[nodiscard]] Value as_document(Value schema, std::string_view kind, Form form);
}  // namespace detail

/// Paths and commands are what somebody has, whatever they are written in.
template <typename Row, typename T>
Value SchemaWriter::row_schema(const Row& row, const T& value) {
  is_bytes_ = row.letters == Letters::Any && row.max_bytes > kMaxLabel;
  Value schema = [&] {
    if constexpr (std::same_as<T, std::string> || std::same_as<T, Memory> || std::same_as<T, int>) {
      if (row.wire == Wire::NullIfDefault) return schema_of(std::optional<T>(), row.range);
    }
    return schema_of(value, row.range);
  }();
  is_bytes_ = false;
  return detail::with_row(std::move(schema), row);
}

template <typename Row, typename T>
void SchemaWriter::described(const Row& row, const T& value) {
  Value schema = row_schema(row, value);
  if (row.wire != Wire::Required) schema = with_default(std::move(schema), value);
  if constexpr (!Described<T>) {
    if (form_ == Form::Request) schema = detail::with_change(std::move(schema), row.change);
  }
  add(row.name, std::move(schema), form_ == Form::Answer || row.wire == Wire::Required);
}

template <typename T>
void Schemas::document(std::string_view kind, Form form, const T& sample) {
  const std::string name(kind);
  if (!take(name, typeid(Document<T>))) return;
  Value schema = SchemaWriter::object(sample, form, this);
  named_.insert_or_assign(name, detail::as_document(std::move(schema), kind, form));
}

}  // namespace gflow::api
