// SPDX-License-Identifier: Apache-2.0
#include "api/query.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "base/text.h"

namespace gflow::api {
namespace {

constexpr std::size_t kMaxParameters = 1000;

std::optional<unsigned> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

/// What a "+" is: in a query a blank.
enum class Plus { Space, Itself };

Result<std::string> decode(std::string_view text, Plus plus = Plus::Space) {
  const auto refuse = [text, plus](std::string_view why) {
    return fail(Code::Usage,
                fmt::format("'{}' is not a {}: {}",
                            printable(text.substr(0, 100)),
                            plus == Plus::Space ? "query" : "path",
                            why));
  };
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i] == '+' && plus == Plus::Space ? ' ' : text[i];
      continue;
    }
    const auto high = i + 2 < text.size() ? hex_digit(text[i + 1]) : std::nullopt;
    const auto low = i + 2 < text.size() ? hex_digit(text[i + 2]) : std::nullopt;
    if (!high || !low) return refuse("% must be followed by two hex digits");
    out += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  if (out.find('\0') != std::string::npos) return refuse("it contains a NUL character");
  return out;
}

void append_encoded(std::string& out, std::string_view text) {
  // RFC 3986 unreserved, and what a query may hold bare and is met often in lists and times.
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~,:*?@/";
  for (const char c : text) {
    if (kPlain.find(c) != std::string_view::npos) {
      out += c;
    } else {
      fmt::format_to(std::back_inserter(out), "%{:02X}", static_cast<unsigned char>(c));
    }
  }
}

}  // namespace

Result<std::vector<Parameter>> read_parameters(std::string_view query,
                                               std::span<const std::string_view> lists) {
  std::vector<Parameter> parameters;
  std::set<std::string> seen;
  for (const std::string_view pair : split(query, '&')) {
    if (pair.empty()) continue;
    if (parameters.size() >= kMaxParameters) {
      return fail(Code::Usage, fmt::format("more than {} query parameters", kMaxParameters));
    }
    const std::size_t equals = pair.find('=');
    const bool has_value = equals != std::string_view::npos;
    std::string name = GF_TRY(decode(pair.substr(0, equals)));
    if (std::ranges::find(lists, name) == lists.end() && !seen.insert(name).second) {
      return fail(
          Code::Usage,
          fmt::format("query parameter '{}' is given twice", printable(name.substr(0, 100))));
    }
    parameters.push_back(
        {std::move(name), GF_TRY(decode(has_value ? pair.substr(equals + 1) : ""))});
  }
  return parameters;
}

Result<std::string> decode_percent(std::string_view text) { return decode(text, Plus::Itself); }

void append_parameter(std::string& query, std::string_view name, std::string_view value) {
  if (!query.empty()) query += '&';
  append_encoded(query, name);
  query += '=';
  append_encoded(query, value);
}

std::unexpected<Error> unknown_parameter(std::string_view name,
                                         const std::vector<std::string>& known) {
  const auto near = nearest(name.substr(0, 100), known);
  const std::string what =
      fmt::format("there is no query parameter '{}'", printable(name.substr(0, 100)));
  if (known.empty()) return fail(Code::Usage, what + "; there are none here");
  return fail(Code::Usage,
              near ? fmt::format("{}; did you mean '{}'?", what, *near)
                   : fmt::format("{}; there are {}", what, join(known, ", ")));
}

}  // namespace gflow::api
