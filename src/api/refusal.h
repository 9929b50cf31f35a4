// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "base/result.h"

namespace gflow::api {

/// A field of a body that is wrong.
struct FieldError {
  std::string pointer;  ///< RFC 6901; "" is the body itself
  std::string detail;

  friend bool operator==(const FieldError&, const FieldError&) = default;
};

/// Why a request is refused: an error and, where the fault is in fields of its body, which they
/// are. The message has a line for each.
struct Refusal : Error {
  explicit Refusal(Error why) : Error(std::move(why)) {}
  explicit Refusal(std::vector<FieldError> wrong, Code kind = Code::Usage);

  std::vector<FieldError> fields;
};

/// What a body asks for.
template <typename T>
using Asked = std::expected<T, Refusal>;

/// Refuses one field.
[[nodiscard]] std::unexpected<Refusal> refuse(std::string pointer, std::string detail);
[[nodiscard]] std::unexpected<Refusal> refuse(std::string pointer, const Error& why);

/// Of what came in place of an answer, and is none of gflowd's: Failure, as nothing that was typed
/// is wrong.
[[nodiscard]] Error no_answer(const std::string& why);

}  // namespace gflow::api
