// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace gflow::server {

/// Whether an Accept-Encoding takes gzip (RFC 9110, 12.5.3).
[[nodiscard]] bool takes_gzip(std::string_view accept_encoding);

/// Makes a text what gzip has it as (RFC 1952), fast rather than small, a piece at a time.
class Gzip {
 public:
  Gzip();
  /// The next piece of the text. Nothing comes after the last.
  void put(std::string_view piece, bool is_last);
  /// All of it, after the last piece; "" if there was no memory for it.
  [[nodiscard]] std::string take();

 private:
  struct Stream;
  struct End {
    void operator()(Stream* stream) const;
  };
  std::unique_ptr<Stream, End> stream_;  ///< none: there is no memory
  std::string out_;
};

/// The whole text at once.
[[nodiscard]] std::string gzip(std::string_view text);

}  // namespace gflow::server
