// SPDX-License-Identifier: Apache-2.0
#include "api/json_schema.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/spec_fields.h"

namespace gflow::api {
namespace {

using Schema = nlohmann::ordered_json;

std::string_view change_name(Change change) {
  if (change == Change::Never) return "never";
  return change == Change::Pending ? "pending" : "active";
}

template <class T>
struct Element;
template <class T>
struct Element<std::vector<T>> {
  using Type = T;
};
template <class T>
struct Element<std::optional<T>> {
  using Type = T;
};

template <Described T>
Schema object_schema(const T& defaults);

/// "type" and what goes with it.
template <class T>
Schema type_schema(const T& value, const FieldInfo& row) {
  Schema schema;
  if constexpr (std::is_same_v<T, std::string>) {
    schema["type"] = "string";
  } else if constexpr (std::is_same_v<T, WallTime>) {
    schema["type"] = "string";
    schema["format"] = "date-time";
  } else if constexpr (std::is_same_v<T, bool>) {
    schema["type"] = "boolean";
  } else if constexpr (std::is_enum_v<T>) {
    for (const T one : kValues<T>) schema["enum"].push_back(json_name(one));
  } else if constexpr (Described<T>) {
    schema = object_schema(value);
  } else if constexpr (requires { value.has_value(); }) {
    using Inner = typename Element<T>::Type;
    schema = type_schema(Inner{}, row);
    schema["type"] = {schema["type"], "null"};
  } else if constexpr (requires { value.front(); }) {
    using Inner = typename Element<T>::Type;
    schema["type"] = "array";
    schema["items"] = type_schema(Inner{}, row);
  } else {
    schema["type"] = "integer";
    if (row.range.least != INT64_MIN) schema["minimum"] = row.range.least;
    if (row.range.most != INT64_MAX) schema["maximum"] = row.range.most;
  }
  return schema;
}

template <class T>
struct OnlyValue {
  const T& value;
};
template <class Io, class T>
void fields(Io& io, const OnlyValue<T>& only) {
  io.field("default", only.value);
}

template <Described T>
Schema object_schema(const T& defaults) {
  Schema schema;
  schema["type"] = "object";
  schema["additionalProperties"] = false;
  each_field<T>([&](const auto& row) {
    const auto& value = row.of(defaults);
    using MemberType = std::remove_cvref_t<decltype(value)>;
    if (row.wire == Wire::Elsewhere) return;
    Schema field = {{"description", row.help}};
    field.update(type_schema(value, row));
    if constexpr (!Described<MemberType>) {
      const std::string text = Writer::document("Default", OnlyValue<MemberType>{value});
      field["default"] = Schema::parse(text)["default"];
      field["x-change"] = change_name(row.change);
    }
    schema["properties"][std::string(row.name)] = std::move(field);
  });
  return schema;
}

}  // namespace

std::string job_schema() {
  Schema schema;
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["title"] = "gflow job specification";
  schema.update(object_schema(JobSpec{}));
  return schema.dump(2) + '\n';
}

}  // namespace gflow::api
