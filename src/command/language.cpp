// SPDX-License-Identifier: Apache-2.0
#include "command/language.h"

#include "base/text.h"
#include "base/translate.h"
#include "os/message_files.h"
#include "os/user.h"

namespace gflow::cli {

namespace {

/// zh_CN.UTF-8@stroke in its parts; "" where it has no such part.
struct Locale {
  std::string_view language;  ///< "zh_CN"
  std::string_view encoding;  ///< "UTF-8"
};

Locale parts_of(std::string_view name) {
  name = name.substr(0, name.find('@'));
  const std::size_t dot = name.find('.');
  return {name.substr(0, dot), dot == std::string_view::npos ? "" : name.substr(dot + 1)};
}

bool is_utf8_name(std::string_view encoding) {
  const std::string name = to_lower(encoding);
  return name.empty() || name == "utf-8" || name == "utf8";
}

bool is_english(std::string_view language) {
  return language == "C" || language == "POSIX" || language == "en" || language.starts_with("en_");
}

std::string locale_of(const Variable& variable) {
  for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"}) {
    if (const auto value = variable(name); value && !value->empty()) return *value;
  }
  return "C";
}

}  // namespace

std::vector<std::string> wanted_languages(const Variable& variable) {
  const std::string locale = locale_of(variable);
  const Locale asked = parts_of(locale);
  if (asked.language == "C" || asked.language == "POSIX" || !is_utf8_name(asked.encoding)) {
    return {};
  }
  std::string list = variable("LANGUAGE").value_or("");
  if (list.empty()) list = locale;
  std::vector<std::string> wanted;
  for (const std::string_view name : split(list, ':')) {
    const std::string_view language = parts_of(name).language;
    // A name, not a path.
    if (language.empty() || language.contains('/')) continue;
    if (is_english(language)) break;
    wanted.emplace_back(language);
    const std::string_view alone = language.substr(0, language.find('_'));
    if (alone != language) wanted.emplace_back(alone);
  }
  return wanted;
}

void choose_language() {
  for (const std::string& language : wanted_languages(os::environment)) {
    if (const MessageCatalogue* catalogue = os::messages_of(language)) {
      return set_messages(catalogue);
    }
  }
}

}  // namespace gflow::cli
