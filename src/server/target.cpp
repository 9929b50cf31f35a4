// SPDX-License-Identifier: Apache-2.0
#include "server/target.h"

#include <algorithm>
#include <array>

#include "api/query.h"
#include "base/text.h"
#include "base/translate.h"

namespace gflow::server {
namespace {

constexpr std::array<std::string_view, 2> kSchemes = {"http://", "https://"};

/// How much of the text is a scheme of a URL.
std::size_t scheme_of(std::string_view text) {
  for (const std::string_view scheme : kSchemes) {
    if (to_lower(text.substr(0, scheme.size())) == scheme) return scheme.size();
  }
  return 0;
}

std::unexpected<Error> no_target(std::string_view text) {
  return fail(Code::Usage,
              tr_format("'{}' is no target of a request", printable(text.substr(0, 100))));
}

bool is_hidden(char c) {
  const auto code = static_cast<unsigned char>(c);
  return c == '/' || code < 0x20 || code == 0x7f;
}

/// Segment by segment, as a "/" that was encoded is part of one.
Result<std::string> decode_path(std::string_view path) {
  if (!path.contains('%')) return std::string(path);
  std::string decoded = GF_TRY(api::decode_percent(path));
  std::size_t slashes = 0;
  for (const char c : decoded) {
    if (c == '/') ++slashes;
    if (c != '/' && is_hidden(c)) return no_target(path);
  }
  const auto typed = static_cast<std::size_t>(std::count(path.begin(), path.end(), '/'));
  if (slashes != typed) return no_target(path);
  return decoded;
}

}  // namespace

Result<Target> read_target(std::string_view text) {
  if (text == "*") return Target{.path = "*"};
  Target target;
  std::string_view rest = text;
  if (const std::size_t scheme = scheme_of(rest); scheme != 0) {
    rest.remove_prefix(scheme);
    const std::size_t end = std::min(rest.find_first_of("/?"), rest.size());
    target.authority = std::string(rest.substr(0, end));
    rest.remove_prefix(end);
    if (target.authority.empty() || target.authority.contains('@')) return no_target(text);
  }
  if (target.authority.empty() && !rest.starts_with('/')) return no_target(text);
  const std::size_t mark = rest.find('?');
  target.path = GF_TRY(decode_path(rest.substr(0, mark)));
  if (target.path.empty()) target.path = "/";
  if (mark != std::string_view::npos) target.query = std::string(rest.substr(mark + 1));
  return target;
}

}  // namespace gflow::server
