// SPDX-License-Identifier: Apache-2.0
#include "api/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "api/base64.h"
#include "api/json.h"
#include "base/text.h"
#include "base/utf8.h"

namespace gflow::api {
namespace {

/// Of ASCII, in a string. Most texts are nothing else.
bool stands_for_itself(char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }

}  // namespace

void Writer::open_document(std::string_view kind) {
  out_ += '{';
  field("apiVersion", kApiVersion);
  field("kind", kind);
}

void Writer::key(std::string_view name) {
  if (out_.back() == '{') {
    out_ += '"';
  } else {
    out_.append(",\"", 2);
  }
  out_.append(name).append("\":", 2);
}

void Writer::known_text(std::string_view name, const std::string& value) {
  field(name, value.empty() ? std::nullopt : std::optional<std::string_view>(value));
}

void Writer::put_string(std::string_view text) {
  if (std::ranges::all_of(text, stands_for_itself)) {
    out_ += '"';
    out_.append(text) += '"';
    return;
  }
  if (!is_utf8(text)) {
    out_ += "{\"base64\":\"" + base64_encode(text) + "\"}";
    return;
  }
  out_ += '"';
  while (!text.empty()) {
    const utf8::Char c = utf8::next(text);
    put_character(c.point, text.substr(0, c.length));
    text.remove_prefix(c.length);
  }
  out_ += '"';
}

/// What a terminal would obey stands there as what it is: documents are looked at, too.
void Writer::put_character(char32_t point, std::string_view bytes) {
  if (point == U'"' || point == U'\\') {
    (out_ += '\\') += bytes;
  } else if (point == U'\n') {
    out_ += "\\n";
  } else if (utf8::is_control(point)) {
    fmt::format_to(std::back_inserter(out_), "\\u{:04x}", static_cast<std::uint32_t>(point));
  } else {
    out_ += bytes;
  }
}

void Writer::put(double value) {
  // JSON has no infinities; shortest text that reads back as the same number.
  out_ += std::isfinite(value) ? fmt::format("{}", value) : "null";
}

void Writer::put(std::chrono::milliseconds duration) {
  const auto whole = duration.count() / 1000;
  const auto rest = duration.count() % 1000;
  out_ += rest == 0 ? fmt::format("{}", whole) : fmt::format("{}.{:03}", whole, rest);
}

void Writer::put(WallTime time) { put_string(rfc3339(time)); }

void Writer::text_map(std::string_view name,
                      const std::vector<std::pair<std::string, std::string>>& texts) {
  if (filter_ != nullptr && filter_->find(name) == nullptr) return;
  key(name);
  out_ += '{';
  for (const auto& [its, text] : texts) {
    key(its);
    put_string(text);
  }
  out_ += '}';
}

}  // namespace gflow::api
