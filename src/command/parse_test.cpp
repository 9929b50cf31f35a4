// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "command/command.h"
#include "command/context.h"

namespace gflow::cli {
namespace {

Command job_command(Order order) {
  return {
      .name = "demo",
      .summary = "try things",
      .options = {{.name = "gpus", .letters = "g", .aliases = {"gres"}, .value = "N"},
                  {.name = "watch", .letters = "w"},
                  {.name = "all", .letters = "a", .excludes = {"watch"}},
                  {.name = "nice", .value = "N", .implied = "100"},
                  {.name = "param", .value = "X", .repeatable = true},
                  {.name = "form", .letters = "o", .value = "F", .choices = {"csv", "tsv"}},
                  {.name = "shared", .refused = "is not available in this version"}},
      .words = {.name = "WORD", .most = 3},
      .order = order,
      .run = [](const Invocation&, Context&) -> Result<int> { return 0; },
  };
}

/// "gpus=2 | word word", options by name, or "error: ...".
std::string parsed(const Command& command, std::string_view line) {
  const auto invocation = parse(command, *shell_split(line));
  if (!invocation) return "error: " + invocation.error().message;
  std::string out;
  for (const auto& [name, values] : invocation->options) {
    out += fmt::format("{}={} ", name, fmt::join(values, "+"));
  }
  out += fmt::format("| {}", fmt::join(invocation->words, " "));
  return invocation->program == "demo" ? out : invocation->program + ": " + out;
}

struct Case {
  std::string_view line;
  std::string_view want;
};

TEST(Parse, ReadsOptionsAnywhereInMixedOrder) {
  constexpr Case kCases[] = {
      {"", "| "},
      {"--gpus 2", "gpus=2 | "},
      {"--gpus=2", "gpus=2 | "},
      {"--gres 2", "gpus=2 | "},
      {"-g 2", "gpus=2 | "},
      {"-g2", "gpus=2 | "},
      {"-g=2", "gpus=2 | "},
      {"-wg 2", "gpus=2 watch= | "},
      {"--gpus ''", "gpus= | "},
      {"--gpus=", "gpus= | "},
      {"--gpus -5", "gpus=-5 | "},
      {"--gpus 1 --gpus 3", "gpus=3 | "},
      {"--param a --param b", "param=a+b | "},
      {"--nice x", "nice=100 | x"},
      {"--nice=5 x", "nice=5 | x"},
      {"one --gpus 2 two", "gpus=2 | one two"},
      {"one -- --gpus 2", "| one --gpus 2"},
      {"- x", "| - x"},
      {"--form csv", "form=csv | "},
      {"--help --gpus 3 a b c d", "gpus=3 help= | a b c d"},
      {"-V", "version= | "},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(parsed(job_command(Order::Mixed), c.line), c.want) << c.line;
  }
}

TEST(Parse, LeavesWhatFollowsTheFirstWordToTheJob) {
  constexpr Case kCases[] = {
      {"-g 2 python train.py", "gpus=2 | python train.py"},
      {"-g 2 python --gpus", "gpus=2 | python --gpus"},
      {"python --help", "| python --help"},
      {"-w -- -x", "watch= | -x"},
      {"x -- y", "| x -- y"},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(parsed(job_command(Order::FirstWordEndsOptions), c.line), c.want) << c.line;
  }
}

TEST(Parse, ANumberBelowZeroIsAWordWhereNoLetterIsThatDigit) {
  EXPECT_EQ(parsed(job_command(Order::Mixed), "-1 -g 2"), "gpus=2 | -1");
  Command command = job_command(Order::Mixed);
  command.options.push_back({.name = "one", .letters = "1"});
  EXPECT_EQ(parsed(command, "-1 x"), "one= | x");
}

TEST(Parse, SaysWhatIsWrongAndWhatIsNear) {
  constexpr Case kCases[] = {
      {"--gpu 2", "error: unknown option '--gpu'; did you mean --gpus?"},
      {"--zzzzzz", "error: unknown option '--zzzzzz'"},
      {"-x", "error: unknown option '-x'"},
      {"--gpus", "error: --gpus needs a value: --gpus N"},
      {"-g", "error: -g needs a value: -g N"},
      {"--watch=2", "error: --watch takes no value"},
      {"--form pdf", "error: --form: 'pdf' is not one of csv, tsv"},
      {"--shared", "error: --shared is not available in this version"},
      {"-a -w", "error: --all and --watch are mutually exclusive"},
      {"a b c d", "error: unexpected argument 'd'"},
      {"--\x1b[31m", "error: unknown option '--\\x1b[31m'"},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(parsed(job_command(Order::Mixed), c.line), c.want) << c.line;
  }
}

Command tree_command() {
  Command command{.name = "demo", .summary = "has commands"};
  command.subcommands = {{.name = "show",
                          .summary = "show",
                          .options = {{.name = "long", .letters = "l"}},
                          .words = {.name = "JOB", .least = 1, .most = 1},
                          .aliases = {"s"}},
                         {.name = "secret", .summary = "hidden", .hidden = true}};
  command.elsewhere = {{"signal", "demo --signal"}};
  return command;
}

TEST(Parse, ChoosesASubcommand) {
  constexpr Case kCases[] = {
      {"show 5", "demo show: | 5"},
      {"s -l 5", "demo show: long= | 5"},
      {"--json show 5", "demo show: json= | 5"},
      {"show --help", "demo show: help= | "},
      {"show", "error: missing argument: JOB"},
      {"", "error: no command given"},
      {"shw 5", "error: unknown command 'shw'; did you mean demo show?"},
      {"signal", "error: unknown command 'signal'; use 'demo --signal'"},
      {"frobnicate", "error: unknown command 'frobnicate'; the commands are show"},
      {"--help", "help= | "},
  };
  for (const Case& c : kCases) EXPECT_EQ(parsed(tree_command(), c.line), c.want) << c.line;
}

TEST(Parse, KnowsWhoseMistakeItIs) {
  for (const auto& [line, want] : {std::pair{"show 1 2", "demo show"},
                                   std::pair{"s --nope", "demo show"},
                                   std::pair{"--nope show", "demo"},
                                   std::pair{"nope", "demo"},
                                   std::pair{"", "demo"}}) {
    EXPECT_EQ(program_of(tree_command(), *shell_split(line)), want) << line;
  }
}

TEST(Parse, TakesASubcommandOfACommandWithWordsOnlyInFront) {
  Command command = job_command(Order::FirstWordEndsOptions);
  command.subcommands = {
      {.name = "new", .summary = "make one", .words = {.name = "NAME", .least = 1, .most = 1}}};
  EXPECT_EQ(parsed(command, "new x"), "demo new: | x");
  EXPECT_EQ(parsed(command, "-g 1 new x"), "gpus=1 | new x");
  EXPECT_EQ(parsed(command, "-- new x"), "| new x");
}

Command with_subcommands() {
  const auto run = [](const Invocation&, Context&) -> Result<int> { return 0; };
  return {.name = "demo",
          .options = {{.name = "devices", .value = "X"}},
          .subcommands = {{.name = "start",
                           .options = {{.name = "devices", .value = "X"},
                                       {.name = "form", .value = "F", .excludes = {"json"}},
                                       {.name = "every", .value = "N", .needs = "watch"},
                                       {.name = "watch"}},
                           .run = run},
                          {.name = "log", .common = Common::Text, .run = run}},
          .run = run};
}

TEST(Parse, TakesOptionsBeforeTheSubcommandForItsOwn) {
  constexpr Case kCases[] = {
      {"--devices a start", "demo start: devices=a | "},
      {"--devices a start --devices b", "demo start: devices=b | "},
      {"--devices a log", "error: unknown option '--devices'"},
      {"--devices a log --help", "demo log: help= | "},
      {"--json start", "demo start: json= | "},
      {"--json start --form x", "error: --form and --json are mutually exclusive"},
  };
  for (const Case& c : kCases) EXPECT_EQ(parsed(with_subcommands(), c.line), c.want) << c.line;
}

TEST(Parse, RefusesWhatWouldBePassedOver) {
  constexpr Case kCases[] = {
      {"start --every 5", "error: --every requires --watch"},
      {"start --every 5 --watch", "demo start: every=5 watch= | "},
      {"log --json", "error: --json is not available: this command prints text"},
      {"--json log", "error: --json is not available: this command prints text"},
      {"log --color never", "demo log: color=never | "},
  };
  for (const Case& c : kCases) EXPECT_EQ(parsed(with_subcommands(), c.line), c.want) << c.line;
}

}  // namespace
}  // namespace gflow::cli
