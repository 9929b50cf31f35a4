// SPDX-License-Identifier: Apache-2.0
#include "command/language.h"

#include <gtest/gtest.h>

#include <map>

#include "base/text.h"

namespace gflow::cli {
namespace {

TEST(Language, IsWhatTheEnvironmentAsksForAsGettextReadsIt) {
  struct Case {
    const char* what;
    std::map<std::string, std::string> environment;
    const char* wanted;
  };
  const Case cases[] = {
      {"nothing said", {}, ""},
      {"the usual", {{"LANG", "zh_CN.UTF-8"}}, "zh_CN zh"},
      {"LC_MESSAGES before LANG",
       {{"LC_MESSAGES", "zh_CN.utf8"}, {"LANG", "en_US.UTF-8"}},
       "zh_CN zh"},
      {"LC_ALL before all",
       {{"LC_ALL", "C"}, {"LC_MESSAGES", "zh_CN.UTF-8"}, {"LANG", "zh_CN.UTF-8"}},
       ""},
      {"an empty one is none", {{"LC_ALL", ""}, {"LANG", "zh_CN.UTF-8"}}, "zh_CN zh"},
      {"English", {{"LANG", "en_US.UTF-8"}}, ""},
      {"a list before the locale",
       {{"LANG", "en_US.UTF-8"}, {"LANGUAGE", "zh_CN:de"}},
       "zh_CN zh de"},
      {"English in the list ends it", {{"LANG", "zh_CN.UTF-8"}, {"LANGUAGE", "fr:en:zh_CN"}}, "fr"},
      {"no list in C", {{"LANG", "C.UTF-8"}, {"LANGUAGE", "zh_CN"}}, ""},
      {"no list in POSIX", {{"LANG", "POSIX"}, {"LANGUAGE", "zh_CN"}}, ""},
      {"without an encoding", {{"LANG", "zh_CN"}}, "zh_CN zh"},
      {"in an encoding that is not written", {{"LANG", "zh_CN.GBK"}}, ""},
      {"with a modifier", {{"LANG", "zh_CN.UTF-8@stroke"}}, "zh_CN zh"},
      {"a path is none", {{"LANG", "en_US.UTF-8"}, {"LANGUAGE", "../../x:zh_CN"}}, "zh_CN zh"},
  };
  for (const Case& c : cases) {
    const auto wanted = wanted_languages([&](const char* name) -> std::optional<std::string> {
      const auto at = c.environment.find(name);
      return at == c.environment.end() ? std::nullopt : std::optional(at->second);
    });
    EXPECT_EQ(join(wanted, " "), c.wanted) << c.what;
  }
}

}  // namespace
}  // namespace gflow::cli
