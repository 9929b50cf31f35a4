// SPDX-License-Identifier: Apache-2.0
// What the lines of the table are made with.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/translate.h"
#include "settings/settings.h"

namespace gflow::settings {

using std::chrono::seconds;

constexpr std::int64_t kMillion = 1'000'000;
constexpr std::int64_t kTenYears = std::int64_t{3650} * 86'400;

using S = Setting;
constexpr Part kPolicy = Part::Policy;
constexpr Applies kRestart = Applies::Restart;

inline std::string value_text(bool value) { return value ? "true" : "false"; }
inline std::string value_text(const std::string& value) { return value; }
inline std::string value_text(seconds value) { return duration_text(value); }
inline std::string value_text(Memory value) { return memory_text(value); }
template <std::integral T>
std::string value_text(T value) {
  return fmt::format("{}", value);
}

inline Result<void> read_value(const Setting& /*setting*/, bool& field, const std::string& text) {
  if (text != "true" && text != "false") {
    return fail(Code::Usage, tr_format("'{}' is neither true nor false", printable(text)));
  }
  field = text == "true";
  return {};
}

template <std::integral T>
Result<void> read_value(const Setting& setting, T& field, const std::string& text) {
  const auto number = parse_number(text);
  if (!number || std::cmp_less(*number, setting.min) || std::cmp_greater(*number, setting.max)) {
    return fail(
        Code::Usage,
        tr_format("'{}' is not a number from {} to {}", printable(text), setting.min, setting.max));
  }
  field = static_cast<T>(*number);
  return {};
}

inline Result<void> read_value(const Setting& setting, seconds& field, const std::string& text) {
  const seconds value = text == "0" || text == "0s" ? seconds(0) : GF_TRY(parse_duration(text));
  if (value.count() < setting.min) {
    return fail(Code::Usage,
                tr_format("'{}' is too short; the minimum is {}",
                          printable(text),
                          duration_text(seconds(setting.min))));
  }
  field = value;
  return {};
}

inline Result<void> read_value(const Setting& /*setting*/, Memory& field, const std::string& text) {
  field = GF_TRY(parse_memory(text));
  return {};
}

inline Result<void> read_value(const Setting& setting,
                               std::string& field,
                               const std::string& text) {
  if (setting.type == Type::Choice &&
      std::ranges::find(setting.choices, text) == setting.choices.end()) {
    std::vector<std::string> named = setting.choices;
    std::erase(named, "");
    const auto near = nearest(text, named);
    return fail(Code::Usage,
                tr_format("'{}' is not one of {}{}",
                          printable(text),
                          join(named, ", "),
                          near ? tr_format("; did you mean '{}'?", *near) : ""));
  }
  field = text;
  return {};
}

template <typename T>
constexpr Type type_of() {
  if (std::is_same_v<T, bool>) return Type::Boolean;
  if (std::is_integral_v<T>) return Type::Integer;
  if (std::is_same_v<T, seconds>) return Type::Duration;
  if (std::is_same_v<T, Memory>) return Type::Size;
  return Type::Text;
}

/// A setting that is one field. `field(settings)` is a reference to it.
template <typename Field>
Setting of(Setting setting, Field field) {
  using T = std::remove_reference_t<decltype(field(std::declval<Settings&>()))>;
  if (setting.type == Type::Text) setting.type = type_of<T>();
  if (setting.type == Type::Integer && setting.max == 0) setting.max = kMillion;
  if (setting.type == Type::Duration && setting.max == 0) setting.max = kTenYears;
  setting.write = [field](const Settings& settings) { return value_text(field(settings)); };
  // A copy of what reading needs: the setting itself moves into the table.
  Setting rules = setting;
  setting.read = [field, rules](Settings& settings, const std::string& text) {
    return read_value(rules, field(settings), text);
  };
  return setting;
}

/// The daemon in the background runs in "/": a path that begins anywhere else leads nowhere.
inline bool is_relative(std::string_view path) { return !path.empty() && !path.starts_with('/'); }

/// The same setting, which is refused where `path_of` its value is a relative path.
template <typename PathOf>
Setting absolute(Setting setting, PathOf path_of) {
  setting.read = [read = setting.read, path_of](Settings& settings,
                                                const std::string& text) -> Result<void> {
    if (is_relative(path_of(text))) {
      return fail(Code::Usage,
                  tr_format("'{}' is a relative path: begin it with '/'", printable(text)));
    }
    return read(settings, text);
  };
  return setting;
}

inline std::string write_list(const std::vector<std::string>& names) { return join(names, ", "); }
inline std::vector<std::string> read_list(const std::string& text) {
  std::vector<std::string> names;
  for (const std::string_view part : split(text, ',')) {
    const std::string_view name = trim(part);
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

}  // namespace gflow::settings
