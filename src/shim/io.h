// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shim/fd.h"

namespace gflow::shim {

/// Why the shim cannot do its work.
struct Trouble {
  std::string text;  ///< a sentence
  int error = 0;     ///< errno; 0 if there is none
};
template <typename T>
using Outcome = std::expected<T, Trouble>;

/// Of errno: "open lock: No space left on device".
[[nodiscard]] std::unexpected<Trouble> errno_trouble(std::string_view doing);
[[nodiscard]] std::string error_name(int number);
[[nodiscard]] std::string in_quotes(std::string_view text);

[[nodiscard]] std::optional<std::string> read_whole(int fd);
/// The whole file, read through a path; empty if it cannot be read.
[[nodiscard]] std::optional<std::string> read_path(const std::string& path);
[[nodiscard]] bool write_whole(int fd, std::string_view data);
/// Writes a small file of /proc or of a control group in one call.
[[nodiscard]] bool write_path(const std::string& path, std::string_view data);

[[nodiscard]] std::int64_t monotonic_ns();
[[nodiscard]] std::int64_t wall_ms();

}  // namespace gflow::shim
