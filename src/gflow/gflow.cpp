// SPDX-License-Identifier: Apache-2.0
#include "gflow/gflow.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <ostream>

#include "base/text.h"
#include "base/translate.h"
#include "base/version.h"
#include "cli/commands.h"
#include "command/context.h"
#include "command/help.h"
#include "command/language.h"
#include "command/run_command.h"
#include "lab/commands/lab.h"
#include "os/file.h"
#include "os/user.h"

namespace gflow::cli {

namespace {

/// gflowd prints its own: it is another program, of a layer above this one.
Result<int> become_gflowd(Context& context) {
  context.out.flush();
  const std::string program = os::program_directory() + "/gflowd";
  (void)::execl(program.c_str(), "gflowd", "__man", nullptr);
  return os::errno_error("run", program);
}

Result<int> run_man(const Invocation& invocation, Context& context) {
  const std::string& name = invocation.words.front();
  if (name == "gflowd") return become_gflowd(context);
  const auto at = std::ranges::find(suite(), name, &Command::name);
  context.out << man_page(at == suite().end() ? gflow_command() : *at, kVersion);
  return 0;
}

Command man_command() {
  Command command{
      .name = "man",
      .summary = tr("print the man page of a command as roff"),
      .usage = {"COMMAND"},
      .words = {.name = "COMMAND",
                .help = tr("gflow or one of its commands."),
                .least = 1,
                .most = 1,
                .complete = Complete::Choice,
                .choices = {"gflow", "gflowd"}},
      .common = Common::Basic,
      .examples = {{"gflow man gbatch | man -l -", tr("read a man page")}},
      .run = run_man,
  };
  for (const Command& program : suite()) command.words.choices.push_back(program.name);
  return command;
}

/// "gqueue" is called "queue" as well below gflow.
std::string short_name(const std::string& name) { return name.substr(1); }

}  // namespace

Command gflow_command() {
  Command command{
      .name = "gflow",
      .summary = tr("share the GPUs of a machine"),
      .usage = {"COMMAND [options]"},
      .description =
          tr("gflow queues jobs and allocates each the GPUs it requests. 'gflowd up' starts the "
             "daemon. The commands below are also programs of their own: 'gflow queue' is gqueue."),
      .common = Common::Basic,
      .examples = {{"gflowd up", tr("start the daemon")},
                   {"gbatch --gpus 1 python train.py", tr("submit a job")},
                   {"gqueue", tr("list the queue")},
                   {"gflow doctor", tr("check what is missing on this machine")}},
      .notes = {{"Completion",
                 tr("'gflow completion bash|zsh|fish' prints the completion script for a shell; so "
                    "does 'completion' of every other command.")}},
      .run = run_help,
  };
  for (const Command& program : suite()) {
    command.subcommands.push_back(program);
    command.subcommands.back().aliases.push_back(short_name(program.name));
  }
  command.subcommands.push_back(spec_command());
  command.subcommands.push_back(lab_command());
  command.subcommands.push_back(doctor_command());
  command.subcommands.push_back(man_command());
  return command;
}

int multicall_main(int argc, char** argv) {
  choose_language();
  const std::vector<std::string> all(argv, argv + argc);
  const std::string called = all.empty() ? "gflow" : all[0].substr(all[0].rfind('/') + 1);
  const std::span<const std::string> arguments =
      std::span(all).subspan(std::min<std::size_t>(all.size(), 1));
  const auto program = std::ranges::find(suite(), called, &Command::name);
  if (program != suite().end()) return run_command(*program, arguments);
  if (!arguments.empty()) {
    const auto named = std::ranges::find_if(suite(), [&](const Command& command) {
      return command.name == arguments[0] || short_name(command.name) == arguments[0];
    });
    if (named != suite().end()) return run_command(*named, arguments.subspan(1));
  }
  return run_command(gflow_command(), arguments);
}

}  // namespace gflow::cli
