// SPDX-License-Identifier: Apache-2.0
#include "server/entity_tag.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "base/word_hash.h"
#include "server/made_once.h"

namespace gflow::server {
namespace {

constexpr std::string_view kWeak = "W/";
constexpr std::string_view kCoded = "-gzip\"";
constexpr char kBehindVersion = '.';

/// What both codings of the same have in common.
std::string_view opaque(std::string_view tag) {
  if (tag.starts_with(kWeak)) tag.remove_prefix(kWeak.size());
  tag.remove_suffix(tag.ends_with(kCoded) ? kCoded.size() : tag.ends_with('"') ? 1 : 0);
  return tag;
}

std::string* tag_of(Reply& reply) {
  const auto found =
      std::ranges::find(reply.headers, "ETag", &std::pair<std::string, std::string>::first);
  return found == reply.headers.end() ? nullptr : &found->second;
}

}  // namespace

std::string tag_of_text(std::string_view text) {
  return std::string(kWeak) + '"' + digest_of(text) + '"';
}

bool names_tag(std::string_view header, std::string_view tag) {
  for (const std::string_view part : split(header, ',')) {
    const std::string_view one = trim(part);
    if (one == "*") return true;
    if (opaque(one) == opaque(tag)) return true;
  }
  return false;
}

void mark_coded(Reply& reply) {
  std::string* tag = tag_of(reply);
  if (tag == nullptr || tag->starts_with(kWeak)) return;
  tag->pop_back();
  *tag += kCoded;
}

bool names_version(std::string_view header, std::string_view version) {
  return std::ranges::any_of(split(header, ','), [&](std::string_view part) {
    const std::string_view one = trim(part);
    if (one == "*") return true;
    const std::string_view its = opaque(one);
    return !one.starts_with(kWeak) && its.substr(0, its.rfind(kBehindVersion)) == opaque(version);
  });
}

Reply unless_known(std::string_view if_none_match, Reply reply) {
  if (reply.status != 200) return reply;
  if (std::string* version = tag_of(reply)) {
    version->pop_back();
    *version += fmt::format("{}{}\"", kBehindVersion, digest_of(reply.body));
  } else {
    reply.headers.emplace_back("ETag", reply.kept ? reply.kept->tag : tag_of_text(reply.body));
  }
  const bool is_known = !if_none_match.empty() && names_tag(if_none_match, *tag_of(reply));
  if (!is_known) return reply;
  reply.status = 304;
  reply.body.clear();
  reply.content_type.clear();
  return reply;
}

}  // namespace gflow::server
