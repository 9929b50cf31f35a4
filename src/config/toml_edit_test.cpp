// SPDX-License-Identifier: Apache-2.0
#include "config/toml_edit.h"

#include <gtest/gtest.h>

namespace gflow::config {
namespace {

const settings::Setting& named(const char* name) { return *settings::find(name).value(); }

struct Row {
  const char* what;
  const char* text;
  const char* setting;
  const char* value;
  const char* want;
};

TEST(TomlEdit, SetsAValueAndLeavesAllElse) {
  const Row rows[] = {
      {"a value where it stands, its comment kept",
       "# mine\n[scheduler]  # ours\nmax_queued = 5   # few\norder = 'learned'\n",
       "scheduler.max_queued",
       "7",
       "# mine\n[scheduler]  # ours\nmax_queued = 7   # few\norder = 'learned'\n"},
      {"a text of another kind of quotes",
       "[scheduler]\n\torder = 'learned' # x\n",
       "scheduler.order",
       "submission",
       "[scheduler]\n\torder = \"submission\" # x\n"},
      {"behind characters of several bytes",
       "[access]\noperators = \"李雷, bob\" # 操作员\nadministrators = \"张三\" # ok\n",
       "access.operators",
       "韩梅梅, @组",
       "[access]\noperators = \"韩梅梅, @组\" # 操作员\nadministrators = \"张三\" # ok\n"},
      {"a new line at the end of its section, indented as the others",
       "[scheduler]\n  order = 'learned'\n  # end\n\n[node]\nname = 'a'\n",
       "scheduler.preempt",
       "false",
       "[scheduler]\n  order = 'learned'\n  preempt = false\n  # end\n\n[node]\nname = 'a'\n"},
      {"into a section without keys", "[node]\n", "node.name", "a", "[node]\nname = \"a\"\n"},
      {"behind the last line without its end",
       "[node]",
       "node.name",
       "a",
       "[node]\nname = \"a\"\n"},
      {"a new section", "# x\n", "node.name", "a", "# x\n\n[node]\nname = \"a\"\n"},
      {"an empty file", "", "node.name", "a", "[node]\nname = \"a\"\n"},
      {"an array over several lines",
       "[access]\noperators = [\n  'a', # one\n  'b',\n] # all\n[node]\n",
       "access.operators",
       "c",
       "[access]\noperators = \"c\" # all\n[node]\n"},
      {"an inline table",
       "[priority]\nusers = {a = 1, b = 2} # x\n",
       "priority.users",
       "c=3",
       "[priority]\nusers = \"c=3\" # x\n"},
      {"dotted keys", "node.name = 'a' # x\n", "node.name", "b", "node.name = \"b\" # x\n"},
      {"a section whose sub-table came first",
       "[priority.users]\na = 1\n",
       "priority.max",
       "20",
       "[priority.users]\na = 1\n\n[priority]\nmax = 20\n"},
      {"lines that end as on Windows",
       "[node]\r\nname = 'a'\r\n",
       "node.labels",
       "a=b",
       "[node]\r\nname = 'a'\r\nlabels = \"a=b\"\r\n"},
      {"a value that was wrong",
       "[scheduler]\nmax_queued = 'many'\n",
       "scheduler.max_queued",
       "5",
       "[scheduler]\nmax_queued = 5\n"},
      {"quotes and backslashes",
       "[access]\n",
       "access.operators",
       R"(a"b\c)",
       "[access]\noperators = \"a\\\"b\\\\c\"\n"},
      {"another gflow's keys stay",
       "timezone = 'UTC'\n[daemon]\nport = 1\n",
       "daemon.log_level",
       "debug",
       "timezone = 'UTC'\n[daemon]\nport = 1\nlog_level = \"debug\"\n"},
  };
  for (const Row& row : rows) {
    const auto changed = set_in_toml(row.text, "f", named(row.setting), row.value);
    ASSERT_TRUE(changed) << row.what << ": " << changed.error().message;
    EXPECT_EQ(*changed, row.want) << row.what;
  }
}

TEST(TomlEdit, TakesASettingOut) {
  const Row rows[] = {
      {"its line",
       "[node]\nname = 'a' # x\nlabels = ''\n",
       "node.name",
       "",
       "[node]\nlabels = ''\n"},
      {"all its lines",
       "[access]\noperators = [\n 'a',\n]\n# y\n",
       "access.operators",
       "",
       "[access]\n# y\n"},
      {"a table of its own",
       "[priority]\nmax = 5\n[priority.users]\na = 1\nb = 2\n[node]\nname = 'x'\n",
       "priority.users",
       "",
       "[priority]\nmax = 5\n[node]\nname = 'x'\n"},
  };
  for (const Row& row : rows) {
    const auto changed = unset_in_toml(row.text, "f", named(row.setting));
    ASSERT_TRUE(changed) << row.what << ": " << changed.error().message;
    EXPECT_EQ(*changed, row.want) << row.what;
  }
  EXPECT_EQ(unset_in_toml("[node]\n", "f", named("node.name")).error().code, Code::NotFound);
}

TEST(TomlEdit, RefusesWhatItCannotDoCleanly) {
  const Row rows[] = {
      {"a value it cannot have", "", "scheduler.max_queued", "0", "is not a number from 1 to"},
      {"a file that is no TOML", "[node\n", "node.name", "a", "f:1: "},
      {"another line that is wrong",
       "[node]\nname = 'a'\nnam = 'b'\n",
       "node.name",
       "c",
       "f:3: there is no key 'node.nam'"},
      {"a table of its own",
       "[priority.users]\na = 1\n",
       "priority.users",
       "b=2",
       "f:1: this is a table of its own"},
      {"a new key in an inline table", "node = {name = 'a'}\n", "node.labels", "a=b", "f:3: "},
  };
  for (const Row& row : rows) {
    const auto changed = set_in_toml(row.text, "f", named(row.setting), row.value);
    ASSERT_FALSE(changed) << row.what << ": " << *changed;
    EXPECT_TRUE(changed.error().message.contains(row.want)) << changed.error().message;
  }
  EXPECT_FALSE(unset_in_toml("node = {name = 'a', labels = 'a=b'}\n", "f", named("node.name")));
}

}  // namespace
}  // namespace gflow::config
