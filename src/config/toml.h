// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "config/problem.h"

namespace gflow::config {

/// A text of which toml++ 3.3 believes what is not so, as "[ #" and "operators = [ }": by itself it
/// ends the process there, or goes on with anything at all where it is built without assertions.
struct TomlConfusion {};

[[noreturn]] inline void confused_by_toml() { throw TomlConfusion(); }

}  // namespace gflow::config

// Whoever reads TOML includes it by this header, so that all that is linked is made alike.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) \
  (static_cast<bool>(expr) ? static_cast<void>(0) : ::gflow::config::confused_by_toml())
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace gflow::config {

/// The tables of a text, or the first line that is not TOML. `path` is for the problem.
[[nodiscard]] std::expected<toml::table, Problem> parse_toml(std::string_view text,
                                                             const std::string& path);

}  // namespace gflow::config
