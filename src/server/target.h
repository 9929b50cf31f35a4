// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace gflow::server {

/// What a request line asks for (RFC 9112, 3.2).
struct Target {
  std::string path;   ///< decoded; "*" is the server as a whole
  std::string query;  ///< as it came, without the "?"
  std::string
      authority;  ///< "host:port" of one that names a whole URL, in place of the header Host
};

/// "/path?query", "http://host/path?query" or "*". Errors: Usage for anything else, and for a path
/// with a % that is not followed by two hex digits, or that hides a "/" or a character nobody sees.
[[nodiscard]] Result<Target> read_target(std::string_view text);

}  // namespace gflow::server
