// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gflow::api {

/// One name=value of a query string, decoded.
struct Parameter {
  std::string name;
  std::string value;
};

/// "a=1&b=x%20y" as its pairs in order; "+" is a space. Errors: Code::Usage for a % that is not
/// followed by two hex digits, a decoded NUL, more than 1000 pairs, a name given twice that is none
/// of `lists`.
[[nodiscard]] Result<std::vector<Parameter>> read_parameters(
    std::string_view query, std::span<const std::string_view> lists = {});
/// A path with its %XX as bytes; "+" is itself. Errors: Usage as above.
[[nodiscard]] Result<std::string> decode_percent(std::string_view text);
/// Appends name=value, encoded, with a & before it if it is not the first.
void append_parameter(std::string& query, std::string_view name, std::string_view value);
/// The error of a parameter that is not one of `known`, with the nearest of them.
[[nodiscard]] std::unexpected<Error> unknown_parameter(std::string_view name,
                                                       const std::vector<std::string>& known);

}  // namespace gflow::api
