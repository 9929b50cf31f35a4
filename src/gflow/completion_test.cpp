// SPDX-License-Identifier: Apache-2.0
#include "command/completion.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "cli/commands.h"
#include "gflow/gflow.h"

namespace gflow::cli {
namespace {

std::vector<Candidate> two_jobs(Complete kind) {
  if (kind == Complete::User) return {{"alice", ""}, {"bob", ""}};
  if (kind == Complete::Gpu) return {{"0", ""}, {"1", ""}};
  if (kind == Complete::DrainedGpu) return {{"2", ""}, {"GPU-b", "fan"}};
  return {{"41", "R train"}, {"42", "PD eval"}};
}

/// The answer in one line, texts left out: ":words 41 42".
std::string answer(const Command& command, std::string_view line) {
  std::vector<std::string> words = *shell_split(line);
  if (line.empty() || line.ends_with(' ')) words.emplace_back();
  std::string out;
  const std::string whole = completion_answer(complete(command, words, two_jobs));
  for (const std::string_view piece : split(whole, '\n')) {
    if (!piece.empty())
      out += std::string(out.empty() ? "" : " ") + std::string(piece.substr(0, piece.find('\t')));
  }
  return out;
}

TEST(Completion, KnowsTheTable) {
  struct Case {
    std::string_view program;
    std::string_view line;
    std::string_view want;
  };
  constexpr Case kCases[] = {
      {"gcancel", "", ":words 41 42"},
      {"gcancel", "4", ":words 41 42"},
      {"gcancel", "41,4", ":words 41,41 41,42"},
      {"gcancel", "--dr", ":words --dry-run"},
      {"gcancel", "-u ", ":words alice bob"},
      {"gqueue", "-s Q", ":words Queued"},
      {"gqueue", "--states=R", ":words --states=Running"},
      {"gqueue", "--states = Ru", ":words Running"},
      {"gqueue",
       "--states =",
       ":words Queued Hold Starting Running Suspended Completing Finished Failed "
       "Cancelled Timeout Lost"},
      {"gqueue", "-o j", ":words json jsonl"},
      {"gqueue", "-f JOB", ":words JOBID"},
      {"gqueue", "-f JOBID,ST", ":words JOBID,ST JOBID,STATE JOBID,STARTED"},
      {"gqueue", "--format=NODEL", ":words --format=NODELIST"},
      {"gqueue", "-r t", ":words time"},
      {"gqueue", "--sort -p", ":words -priority"},
      {"gjob", "log --js", ":words"},
      {"gqueue", "--color al", ":words always"},
      {"gjob", "wh", ":words why"},
      {"gjob", "log ", ":words 41 42"},
      {"gjob", "log --pa", ":words --path"},
      {"gctl", "drain ", ":words gpu node"},
      {"gctl", "drain gpu ", ":words 0 1"},
      {"gctl", "drain --reason gpu gpu 0,", ":words 0,0 0,1"},
      {"gctl", "resume gpu ", ":words 2 GPU-b"},
      {"gctl", "resume gpu G", ":words GPU-b"},
      {"gctl", "resume node ", ":words"},
      {"gbatch", "--config ", ":files"},
      {"gbatch", "--chdir ", ":directories"},
      {"gbatch", "--gpus 2 pyt", ":command 3"},
      {"gbatch", "--gpus 2 python tra", ":command 3"},
      {"gbatch", "ne", ":command 1 new"},
      {"gbatch", "--gpu-m", ":words --gpu-memory --gpu-model"},
      {"gbatch", "--mail-t", ":words"},
  };
  for (const Case& c : kCases) {
    for (const Command& command : suite()) {
      if (command.name == c.program) {
        EXPECT_EQ(answer(command, c.line), c.want) << c.program << " " << c.line;
      }
    }
  }
  EXPECT_EQ(answer(gflow_command(), "queue -o j"), ":words json jsonl");
  EXPECT_EQ(answer(gflow_command(), "man gj"), ":words gjob");
}

TEST(Completion, MakesAScriptForEachShell) {
  for (const std::string_view shell : {"bash", "zsh", "fish"}) {
    const auto script = completion_script("gqueue", shell);
    ASSERT_TRUE(script) << shell;
    EXPECT_NE(script->find("gqueue __complete"), std::string::npos) << shell;
    EXPECT_EQ(script->find("NAME"), std::string::npos) << shell;
  }
  EXPECT_EQ(completion_script("gqueue", "tcsh").error().code, Code::Usage);
}

}  // namespace
}  // namespace gflow::cli
