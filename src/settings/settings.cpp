// SPDX-License-Identifier: Apache-2.0
#include "settings/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/translate.h"

namespace gflow::settings {
namespace {

/// The setting somebody meant: of that name in another section, else the nearest.
std::optional<std::string> meant(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('.') + 1);
  std::vector<std::string> full;
  std::vector<std::string> bare;
  std::vector<std::string> same;
  for (const Setting& one : table()) {
    full.push_back(one.full_name());
    bare.emplace_back(one.name);
    if (one.name == last) same.push_back(one.full_name());
  }
  if (same.size() == 1) return same.front();
  if (name.find('.') != std::string_view::npos) return nearest(name, full);
  const auto near = nearest(name, bare);
  if (!near) return std::nullopt;
  return full.at(static_cast<std::size_t>(std::ranges::find(bare, *near) - bare.begin()));
}

std::unexpected<Error> unknown(std::string_view name) {
  const auto near = meant(name);
  return fail(Code::Usage,
              tr_format("there is no key '{}'{}",
                        printable(name),
                        near ? tr_format("; did you mean '{}'?", *near)
                             : "; 'gctl config show' lists them"));
}

/// As TOML writes it.
std::string toml_value(const Setting& setting) {
  const std::string value = setting.default_value();
  const bool bare = setting.type == Type::Boolean || setting.type == Type::Integer;
  return bare ? value : fmt::format("\"{}\"", value);
}

}  // namespace

std::string_view type_name(Type type) {
  switch (type) {
    case Type::Text:
      return "text";
    case Type::Choice:
      return "choice";
    case Type::Boolean:
      return "boolean";
    case Type::Integer:
      return "integer";
    case Type::Duration:
      return "duration";
    case Type::Size:
      return "size";
    case Type::Address:
      return "address";
    case Type::List:
      return "list";
    case Type::Map:
      return "map";
  }
  return "text";
}

std::string Setting::full_name() const { return fmt::format("{}.{}", section, name); }

std::string Setting::environment() const {
  std::string variable = fmt::format("GFLOW_{}__{}", section, name);
  std::ranges::transform(variable, variable.begin(), ascii_upper);
  return variable;
}

std::string Setting::default_value() const { return write(Settings{}); }

std::string Setting::range() const {
  if (type == Type::Integer) return tr_format("{} to {}", min, max);
  if (type == Type::Duration && min > 0) {
    return tr_format("at least {}", duration_text(std::chrono::seconds(min)));
  }
  std::vector<std::string> named = choices;
  std::erase(named, "");
  return join(named, ", ");
}

Result<const Setting*> find(std::string_view name) {
  for (const Setting& one : table()) {
    if (one.full_name() == name) return &one;
  }
  return unknown(name);
}

Result<const Setting*> find_loosely(std::string_view name) {
  std::vector<const Setting*> found;
  for (const Setting& one : table()) {
    if (one.name == name) found.push_back(&one);
  }
  if (found.size() == 1) return found.front();
  return find(name);
}

bool names_users(std::string_view full_name) {
  return std::ranges::any_of(table(), [full_name](const Setting& one) {
    return one.naming == Naming::Users && one.full_name() == full_name;
  });
}

std::string only_of(std::string_view value,
                    const std::function<bool(std::string_view user)>& is_kept) {
  std::vector<std::string> kept;
  for (const std::string_view pair : split(value, ',')) {
    if (is_kept(trim(pair.substr(0, pair.find('='))))) kept.emplace_back(trim(pair));
  }
  return join(kept, ", ");
}

std::vector<Value> policy_values(const engine::Policy& policy) {
  Settings settings;
  settings.policy = policy;
  std::vector<Value> values;
  for (const Setting& one : table()) {
    if (one.part == Part::Policy) values.push_back({one.full_name(), one.write(settings)});
  }
  return values;
}

Result<void> set_policy_value(engine::Policy& policy, const Value& value) {
  const Setting* setting = GF_TRY(find_loosely(value.name));
  if (setting->part != Part::Policy) {
    return fail(Code::Usage,
                tr_format("{} is not part of the policy", printable(setting->full_name())));
  }
  Settings settings;
  settings.policy = std::move(policy);
  auto done = setting->read(settings, value.value);
  policy = std::move(settings.policy);
  if (!done) return with_context(done.error(), setting->full_name());
  return {};
}

std::string default_file() {
  std::map<std::string_view, std::size_t> widest;  // the column comments begin at, by section
  for (const Setting& one : table()) {
    constexpr std::size_t kAround = 5;  // " = " before the value, two spaces after it
    constexpr std::size_t kLeast = 29;
    std::size_t& column = widest.emplace(one.section, kLeast).first->second;
    column = std::max(column, one.name.size() + toml_value(one).size() + kAround);
  }
  std::string text;
  std::string_view section;
  for (const Setting& one : table()) {
    if (one.section != section) {
      text += fmt::format("{}[{}]\n", section.empty() ? "" : "\n", one.section);
      section = one.section;
    }
    std::string line = fmt::format("{} = {}", one.name, toml_value(one));
    line.resize(widest[one.section], ' ');
    text += fmt::format("{}# {}{}\n", line, one.applies == Applies::Restart ? "* " : "", one.help);
  }
  return text;
}

}  // namespace gflow::settings
