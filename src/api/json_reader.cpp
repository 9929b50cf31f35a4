// SPDX-License-Identifier: Apache-2.0
#include "api/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "api/base64.h"
#include "api/json.h"
#include "base/text.h"
#include "core/text_limits.h"

namespace gflow::api {

std::string Place::pointer() const {
  if (parent == nullptr) return "";
  std::string text = parent->pointer() + "/";
  if (index) return text + std::to_string(*index);
  for (const char c : name) {
    text += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  return text;
}

Reader::Reader(Findings& findings, const Place& place, const Value& value)
    : findings_(findings), place_(place), object_(value.as<Value::Object>()) {
  if (object_ == nullptr) refuse_type(place, "an object", value);
}

void Reader::check_document(std::string_view kind) {
  const auto check = [&](std::string_view name, std::string_view expected) {
    const Value* value = find(name);
    if (value == nullptr) return;
    const std::string* text = value->as<std::string>();
    if (text == nullptr || *text != expected) {
      refuse_type(Place{&place_, name, {}}, fmt::format("'{}'", expected), *value);
    }
  };
  check("apiVersion", kApiVersion);
  check("kind", kind);
}

void Reader::finish() {
  if (object_ == nullptr || findings_.unknown == Unknown::Ignored) return;
  for (const Member& member : *object_) {
    if (std::ranges::find(asked_, member.name) != asked_.end()) continue;
    const std::vector<std::string> names(asked_.begin(), asked_.end());
    const std::string name = printable(member.name.substr(0, 100));
    const auto near = nearest(name, names);
    refuse(Place{&place_, name, {}},
           near ? fmt::format("there is no such field; did you mean '{}'?", *near)
                : fmt::format("there is no such field; there are {}", join(names, ", ")));
  }
}

const Value* Reader::find(std::string_view name) {
  if (findings_.unknown == Unknown::Refused) asked_.push_back(name);  // finish() wants them
  if (object_ == nullptr) return nullptr;
  const auto found = std::ranges::find(*object_, name, &Member::name);
  return found == object_->end() ? nullptr : &found->value;
}

void Reader::missing(std::string_view name) { refuse(Place{&place_, name, {}}, "is missing"); }

/// Of a request all that is wrong, up to what anybody reads; of an answer the first.
void Reader::refuse(const Place& place, std::string detail) {
  const std::size_t most = findings_.unknown == Unknown::Refused ? 20 : 1;
  if (findings_.wrong.size() < most) {
    findings_.wrong.push_back({place.pointer(), std::move(detail)});
  }
}

void Reader::refuse_type(const Place& place, std::string_view expected, const Value& value) {
  refuse(place, fmt::format("must be {}, not {}", expected, value.text()));
}

namespace {

/// 2.0 is as good as 2, as the schema has it (JSON Schema 2020-12, validation 6.1.1), too: what
/// has only one kind of numbers writes it so. Nothing for what a double may not have exactly.
std::optional<std::int64_t> whole_number(const Value& value) {
  if (const auto* number = value.as<std::int64_t>()) return *number;
  const auto* number = value.as<double>();
  constexpr double kExact = 1LL << std::numeric_limits<double>::digits;
  if (number == nullptr || std::abs(*number) > kExact || std::trunc(*number) != *number) return {};
  return static_cast<std::int64_t>(*number);
}

}  // namespace

std::int64_t Reader::integer(const Place& place, const Value& value, Range range) {
  const auto number = whole_number(value);
  if (number && *number >= range.least && *number <= range.most) return *number;
  refuse_type(place, fmt::format("a whole number from {} to {}", range.least, range.most), value);
  return range.least;
}

void Reader::take(const Place& place, const Value& value, bool& out, Range /*range*/) {
  const bool* truth = value.as<bool>();
  if (truth == nullptr) return refuse_type(place, "true or false", value);
  out = *truth;
}

void Reader::take(const Place& place, const Value& value, double& out, Range /*range*/) {
  if (const auto* whole = value.as<std::int64_t>()) {
    out = static_cast<double>(*whole);
  } else if (const auto* number = value.as<double>()) {
    out = *number;
  } else {
    refuse_type(place, "a number", value);
  }
}

void Reader::take(const Place& place, const Value& value, std::string& out, Range /*range*/) {
  // What programs are started with may be long; of all else the work that it makes is bounded.
  const bool may_be_long = is_long_ || findings_.unknown == Unknown::Ignored;
  const auto is_too_long = [&](const std::string& text) {
    if (may_be_long || text.size() <= kMaxCommand) return false;
    refuse(place, fmt::format("must not be longer than {} bytes", kMaxCommand));
    return true;
  };
  if (const auto* text = value.as<std::string>()) {
    if (is_too_long(*text)) return;
    if (text->find('\0') != std::string::npos) {
      return refuse(place, "must not contain a NUL character");
    }
    out = *text;
    return;
  }
  const auto* object = value.as<Value::Object>();
  const bool wrapped = object != nullptr && object->size() == 1 && object->front().name == "base64";
  const auto* encoded = wrapped ? object->front().value.as<std::string>() : nullptr;
  if (encoded == nullptr) return refuse_type(place, "a string or {\"base64\": \"...\"}", value);
  auto bytes = base64_decode(*encoded);
  if (!bytes) return refuse(place, "is not base64");
  if (is_too_long(*bytes)) return;
  const bool may_have_nul = is_content_ || findings_.unknown == Unknown::Ignored;
  if (!may_have_nul && bytes->find('\0') != std::string::npos) {
    return refuse(place, "must not contain a NUL character");
  }
  out = std::move(*bytes);
}

void Reader::take(const Place& place,
                  const Value& value,
                  std::chrono::milliseconds& out,
                  Range /*range*/) {
  constexpr double kMaxSeconds = 1e11;  // 3,000 years: any such number has exact milliseconds
  const auto* whole = value.as<std::int64_t>();
  const auto* fraction = value.as<double>();
  const double seconds = whole != nullptr      ? static_cast<double>(*whole)
                         : fraction != nullptr ? *fraction
                                               : NAN;
  if (!(std::fabs(seconds) <= kMaxSeconds)) return refuse_type(place, "seconds", value);
  out = std::chrono::milliseconds(std::llround(seconds * 1000));
}

void Reader::take(const Place& place, const Value& value, WallTime& out, Range /*range*/) {
  const auto* text = value.as<std::string>();
  if (text == nullptr) return refuse_type(place, "a time such as 2026-03-01T12:00:00Z", value);
  auto time = parse_rfc3339(text->substr(0, 100));
  if (!time) return refuse(place, std::move(time).error().message);
  out = *time;
}

void Reader::between(std::string_view name, double& out, Bounds bounds) {
  const Value* value = find(name);
  if (value == nullptr || value->is_null()) return;
  const Place place{&place_, name, {}};
  take(place, *value, out, {});
  const bool excluded = bounds.at == Bounds::Least::Excluded;
  if (out <= bounds.most && (excluded ? out > bounds.least : out >= bounds.least)) return;
  refuse(place,
         excluded ? fmt::format("must be over {} and at most {}", bounds.least, bounds.most)
                  : fmt::format("must be from {} to {}", bounds.least, bounds.most));
}

void Reader::known_text(std::string_view name, std::string& out) {
  const Value* value = find(name);
  if (value == nullptr) return;
  out.clear();
  if (!value->is_null()) take(Place{&place_, name, {}}, *value, out, {});
}

void Reader::text_map(std::string_view name,
                      std::vector<std::pair<std::string, std::string>>& out) {
  const Value* value = find(name);
  if (value == nullptr) return;
  const Place place{&place_, name, {}};
  const auto* object = value->as<Value::Object>();
  if (object == nullptr) return refuse_type(place, "an object", *value);
  out.clear();
  for (const Member& member : *object) {
    std::string& text = out.emplace_back(member.name, "").second;
    take(Place{&place, member.name, {}}, member.value, text, {});
  }
}

}  // namespace gflow::api
