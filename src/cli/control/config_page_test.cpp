// SPDX-License-Identifier: Apache-2.0
#include "cli/control/config_page.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "settings/settings.h"

namespace gflow::cli {
namespace {

TEST(ConfigPage, HasEverySetting) {
  const std::string page = man_page(gflow_toml_format(), "1.2");
  EXPECT_TRUE(page.starts_with(".TH GFLOW.TOML 5 ")) << page.substr(0, 40);
  std::string_view section;
  std::vector<std::string> wanted = {".SH SYNOPSIS\n\\fI\\(ti/.config/gflow/gflow.toml\\fR\n"};
  for (const settings::Setting& setting : settings::table()) {
    if (section != setting.section)
      wanted.push_back(fmt::format(".SS \"[{}]\"\n", setting.section));
    section = setting.section;
    wanted.push_back(fmt::format(".TP\n\\fB{} = ", setting.name));
  }
  for (const std::string& one : wanted) EXPECT_NE(page.find(one), std::string::npos) << one;
  EXPECT_NE(page.find("\\fBlisten = \"localhost:8000\"\\fR\n"), std::string::npos) << page;
}

}  // namespace
}  // namespace gflow::cli
