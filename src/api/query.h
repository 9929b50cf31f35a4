// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
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
    std::string_view query, std::initializer_list<std::string_view> lists = {});
/// The names of a query, decoded, as they come. Errors: as above.
[[nodiscard]] Result<std::vector<std::string>> names_in(std::string_view query);
/// A path with its %XX as bytes; "+" is itself. Errors: Usage as above.
[[nodiscard]] Result<std::string> decode_percent(std::string_view text);
/// Appends name=value, encoded, with a & before it if it is not the first.
void append_parameter(std::string& query, std::string_view name, std::string_view value);
/// The error of a parameter that is not one of `known`, with the nearest of them.
[[nodiscard]] std::unexpected<Error> unknown_parameter(std::string_view name,
                                                       const std::vector<std::string>& known);
/// A number without sign up to 2^63 - 1. Errors: Code::Usage naming the parameter.
[[nodiscard]] Result<std::uint64_t> number_of(const Parameter& parameter);
/// Errors: Usage for what is neither true nor false.
[[nodiscard]] Result<bool> truth_of(const Parameter& parameter);

}  // namespace gflow::api
