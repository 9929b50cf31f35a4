// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/text.h"
#include "core/requests.h"

namespace gflow {
namespace {

using namespace std::string_view_literals;

/// "3: --gpus|2" per directive.
std::string shown(const std::vector<Directive>& directives) {
  std::string text;
  for (const Directive& directive : directives) {
    if (!text.empty()) text += "; ";
    text += std::to_string(directive.line) + ": " + join(directive.words, "|");
  }
  return text;
}

TEST(Directives, AreTheCommentsBeforeTheFirstCommand) {
  struct Row {
    std::string_view script;
    std::string_view gflow;
    std::string_view slurm;
  };
  const std::vector<Row> rows = {
      {"", "", ""},
      {"#!/bin/bash\n# GFLOW --gpus 2\n#GFLOW --time=4:00:00\necho hi\n",
       "2: --gpus|2; 3: --time=4:00:00",
       ""},
      {"# GFLOW -g 2 --name x --hold\n", "1: -g|2|--name|x|--hold", ""},
      {"# GFLOW --name \"my job\" --project 'a b'\n", "1: --name|my job|--project|a b", ""},
      {"#  GFLOW\t--gpus\t1", "1: --gpus|1", ""},
      {"  # GFLOW --gpus 1\n", "1: --gpus|1", ""},
      {"# GFLOW --gpus 1 # one is enough\n", "1: --gpus|1", ""},
      {"#!/bin/bash\r\n\r\n# GFLOW --gpus 2\r\n#SBATCH --time=10\r\ntrue\r\n",
       "3: --gpus|2",
       "4: --time=10"},
      {"#SBATCH -J x\n# SBATCH -J y\n##SBATCH -J z\n#SBATCHX -J w\n", "", "1: -J|x"},
      {"## GFLOW --gpus 1\n# # GFLOW --gpus 2\n# GFLOWS --gpus 3\n# gflow --gpus 4\n# MYGFLOW\n",
       "",
       ""},
      {"# about\n\n   \n# GFLOW --gpus 2\n", "4: --gpus|2", ""},
      {"set -e\n# GFLOW --gpus 2\n", "", ""},
      {"# GFLOW --gpus 1\nx=1\n# GFLOW --gpus 2\n", "1: --gpus|1", ""},
      {"echo '\n# GFLOW --gpus 2\n'", "", ""},
      {"# GFLOW\n# GFLOW   \n", "", ""},
      {"# GFLOW --name \xff\n", "1: --name|\xff", ""},
      {"\x7f"
       "ELF\n# GFLOW --gpus 2\n",
       "",
       ""},
      {"\0\n# GFLOW --gpus 2\n"sv, "", ""},
      {"# nul \0 in a comment\n# GFLOW -g 1\n"sv, "2: -g|1", ""},
      {"# don't mind\n# GFLOW -g 1\n", "2: -g|1", ""}};
  for (const Row& row : rows) {
    const auto directives = read_directives(row.script);
    ASSERT_TRUE(directives) << row.script;
    EXPECT_EQ(shown(directives->gflow), row.gflow) << row.script;
    EXPECT_EQ(shown(directives->slurm), row.slurm) << row.script;
  }
}

TEST(Directives, AnErrorNamesTheLine) {
  struct Row {
    std::string_view script;
    std::string_view message;
  };
  const std::vector<Row> rows = {
      {"#!/bin/bash\n\n# GFLOW --name 'x\n", "line 3: a ' is opened and never closed"},
      {"#SBATCH --comment=\"x\r\n", "line 1: a \" is opened and never closed"},
      {"# GFLOW --name a\0b\n"sv, "line 1: a directive cannot hold a NUL byte"}};
  for (const Row& row : rows) {
    const auto directives = read_directives(row.script);
    ASSERT_FALSE(directives) << row.script;
    EXPECT_EQ(directives.error(), (Error{Code::Usage, std::string(row.message)}));
  }
}

TEST(Directives, ManyLinesAreRead) {
  std::string script;
  for (int i = 0; i < 50'000; ++i) script += "# GFLOW --param x\n";
  EXPECT_EQ(read_directives(script)->gflow.size(), 50'000U);
}

}  // namespace
}  // namespace gflow
