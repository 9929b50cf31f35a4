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
// What stays encoded in a path: else one segment were two, or what was encoded twice were the same.
constexpr std::string_view kSlash = "%2F";
constexpr std::string_view kPercent = "%25";

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

bool is_unseen(char c) {
  const auto code = static_cast<unsigned char>(c);
  return code < 0x20 || code == 0x7f;
}

void append_kept(std::string& path, char c) {
  if (c == '/') {
    path += kSlash;
  } else if (c == '%') {
    path += kPercent;
  } else {
    path += c;
  }
}

/// One text for each path there is: what may be typed as it is is not encoded.
Result<std::string> normal_path(std::string_view path) {
  if (!path.contains('%')) return std::string(path);
  const std::string decoded = GF_TRY(api::decode_percent(path));
  if (std::ranges::any_of(decoded, is_unseen)) return no_target(path);
  std::string normal;
  for (const std::string_view segment : split(path, '/')) {
    if (segment.data() != path.data()) normal += '/';
    const std::string text = GF_TRY(api::decode_percent(segment));
    for (const char c : text) append_kept(normal, c);
  }
  return normal;
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
  target.path = GF_TRY(normal_path(rest.substr(0, mark)));
  if (target.path.empty()) target.path = "/";
  if (mark != std::string_view::npos) target.query = std::string(rest.substr(mark + 1));
  return target;
}

std::string segment_text(std::string_view segment) {
  std::string text;
  while (!segment.empty()) {
    std::size_t taken = kSlash.size();
    if (segment.starts_with(kSlash)) {
      text += '/';
    } else if (segment.starts_with(kPercent)) {
      text += '%';
    } else {
      text += segment.front();
      taken = 1;
    }
    segment.remove_prefix(taken);
  }
  return text;
}

}  // namespace gflow::server
