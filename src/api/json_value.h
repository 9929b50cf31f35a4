// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace gflow::api {

struct Member;

/// A parsed JSON value. A number without fraction that fits is an std::int64_t, any other a double.
struct Value {
  using Array = std::vector<Value>;
  using Object = std::vector<Member>;
  std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, Array, Object> data;

  [[nodiscard]] bool is_null() const { return data.index() == 0; }
  template <typename T>
  [[nodiscard]] const T* as() const {
    return std::get_if<T>(&data);
  }
  /// What stands here, for an error message: "300", "a string", "an object".
  [[nodiscard]] std::string text() const;
};

struct Member {
  std::string name;
  Value value;
};

/// What a document may hold, so that no input can make the reader slow or large.
constexpr std::size_t kMaxDepth = 32;
constexpr std::size_t kMaxValues = 1'000'000;
constexpr std::size_t kMaxMembers = 128;  ///< of one object

/// One JSON document (RFC 8259). Errors: Code::Usage for text that is not JSON, a name twice in one
/// object, a number no double holds, and for what is over the limits above.
[[nodiscard]] Result<Value> parse_json(std::string_view json);

}  // namespace gflow::api
