// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace gflow::server {

/// What a request line asks for (RFC 9112, 3.2).
struct Target {
  std::string path;   ///< decoded, but for "%2F" and "%25" in a segment; "*": the whole server
  std::string query;  ///< as it came, without the "?"
  std::string
      authority;  ///< "host:port" of one that names a whole URL, in place of the header Host
};

/// "/path?query", "http://host/path?query" or "*". Errors: Usage for anything else, and for a path
/// with a % that is not followed by two hex digits, or that hides a character nobody sees.
[[nodiscard]] Result<Target> read_target(std::string_view text);

/// What a segment of such a path says: "a/b" of "a%2Fb".
[[nodiscard]] std::string segment_text(std::string_view segment);

}  // namespace gflow::server
