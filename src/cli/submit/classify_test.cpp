// SPDX-License-Identifier: Apache-2.0
#include "cli/submit/classify.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "base/text.h"

namespace gflow::cli {
namespace {

using namespace std::string_literals;

FileFacts file(std::string head, bool executable) {
  return {FileFacts::Kind::Regular, executable, std::move(head), ""};
}

Surroundings world() {
  static const std::map<std::string, FileFacts> files = {
      {"train.sh", file("echo hi\n", false)},
      {"./train.sh", file("#!/bin/bash\n", true)},
      {"train.py", file("import torch\n", false)},
      {"run.py", file("#!/usr/bin/env python3\n", false)},
      {"exec.py", file("import torch\n", true)},
      {"job", file("echo hi\n", false)},
      {"run.slurm", file("#SBATCH -n 1\n", false)},
      {"notes.txt", file("hello\n", false)},
      {"./runme", file("echo hi\n", true)},
      {"a.out", file("\x7f"s + "ELF\0\0"s, true)},
      {"data.bin", file("ab\0c"s, false)},
      {"my file.sh", file("echo\n", false)},
      {"python", {FileFacts::Kind::Directory, false, "", ""}},
      {"data", {FileFacts::Kind::Directory, false, "", ""}},
      {"./data", {FileFacts::Kind::Directory, false, "", ""}},
      {"echo", file("text\n", false)},
  };
  return {[](const std::string& path) {
            const auto at = files.find(path);
            FileFacts facts = at == files.end() ? FileFacts{} : at->second;
            facts.absolute = "/home/ann/" + path;
            return facts;
          },
          [](const std::string& name) {
            return name == "python" || name == "echo" || name == "bash" || name == "wait";
          }};
}

std::string classified(std::string_view line) {
  const std::vector<std::string> words = *shell_split(line);
  const auto work = classify(words, world());
  if (!work) return fmt::format("{}: {}", code_name(work.error().code), work.error().message);
  if (const auto* script = std::get_if<ScriptJob>(&*work)) return "script " + script->path;
  return "command " + shell_quote(std::get<CommandJob>(*work).argv);
}

TEST(Classify, TellsScriptsFromCommands) {
  struct Case {
    std::string_view line;
    std::string_view want;
  };
  constexpr Case kCases[] = {
      {"python train.py", "command python train.py"},
      {"echo", "command echo"},
      {"wait", "command wait"},
      {"train.sh", "script train.sh"},
      {"train.sh --lr 1", "script train.sh"},
      {"./train.sh", "script ./train.sh"},
      {"run.py --lr 1", "script run.py"},
      {"job", "script job"},
      {"run.slurm", "script run.slurm"},
      {"./runme 1 2", "script ./runme"},
      {"'my file.sh'", "script my file.sh"},
      {"a.out 1", "command /home/ann/a.out 1"},
      {"'echo a && echo b'", "command bash -c 'echo a && echo b'"},
      {"'python train.py'", "command bash -c 'python train.py'"},
      {"'a;b'", "command bash -c 'a;b'"},
      {"'~/bin/x'", "command bash -c '~/bin/x'"},
      {"train.py",
       "usage: 'train.py' is a text file that names no interpreter; write 'gbatch python "
       "train.py', or begin the file with #!"},
      {"exec.py --lr 1",
       "usage: 'exec.py' is a text file that names no interpreter; write 'gbatch python exec.py "
       "--lr 1', or begin the file with #!"},
      {"notes.txt",
       "usage: 'notes.txt' is a text file that names no interpreter; write 'gbatch bash "
       "notes.txt', or begin the file with #!"},
      {"data.bin",
       "usage: 'data.bin' is not executable; run 'chmod +x data.bin' if it is a program"},
      {"data", "usage: 'data' is a directory"},
      {"./data x", "usage: './data' is a directory"},
      {"missing.sh", "not_found: there is no file 'missing.sh'"},
      {"./missing 1", "not_found: there is no file './missing'"},
      {"list", "usage: there is no program 'list'; did you mean gqueue?"},
      {"queue", "usage: there is no program 'queue'; did you mean gqueue?"},
      {"status 5", "usage: there is no program 'status'; did you mean gqueue?"},
      {"log 5", "usage: there is no program 'log'; did you mean gjob log?"},
      {"cancle", "usage: there is no program 'cancle'; did you mean gcancel?"},
      {"pyton train.py", "not_found: there is no program 'pyton' in PATH"},
      {"cd /tmp",
       "not_found: 'cd' is a shell command, not a program; quote the whole line as one argument: "
       "gbatch 'cd /tmp'"},
      {"A=1 python x",
       "not_found: 'A=1' is not a program; to set a variable write --export ALL,A=1"},
      {"''", "usage: the command is empty"},
  };
  for (const Case& c : kCases) EXPECT_EQ(classified(c.line), c.want) << c.line;
}

}  // namespace
}  // namespace gflow::cli
