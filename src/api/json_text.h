// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "api/json_value.h"

/// JSON made as a tree: for documents whose members are not the fields of a type.
namespace gflow::api {

/// The text of a value; `indent` blanks for each level on lines of their own, 0: all on one line.
[[nodiscard]] std::string json_text(const Value& value, int indent = 0);

[[nodiscard]] inline Value json(std::string_view text) { return {std::string(text)}; }
[[nodiscard]] inline Value json(std::same_as<bool> auto truth) { return {truth}; }
template <std::integral T>
  requires(!std::same_as<T, bool>)
[[nodiscard]] Value json(T number) {
  return {static_cast<std::int64_t>(number)};
}
Value json(const char* text) = delete;  // would be taken for a bool

/// An object built member by member: `Members().add("type", "string").value()`.
class Members {
 public:
  Members& add(std::string_view name, Value value) {
    object_.push_back({std::string(name), std::move(value)});
    return *this;
  }
  Members& add(std::string_view name, std::string_view text) { return add(name, json(text)); }
  Members& add(std::string_view name, const char* text) {
    return add(name, json(std::string_view(text)));
  }
  [[nodiscard]] bool empty() const { return object_.empty(); }
  [[nodiscard]] Value value() { return {std::move(object_)}; }

 private:
  Value::Object object_;
};

}  // namespace gflow::api
