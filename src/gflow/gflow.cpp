// SPDX-License-Identifier: Apache-2.0
#include "gflow/gflow.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <utility>

#include "base/text.h"
#include "base/translate.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/control/config_page.h"
#include "command/context.h"
#include "command/help.h"
#include "command/language.h"
#include "command/run_command.h"
#include "lab/commands/lab.h"
#include "os/file.h"
#include "os/user.h"

namespace gflow::cli {

namespace {

/// "gqueue" is called "queue" as well below gflow.
std::string_view short_name(std::string_view name) { return name.substr(1); }

/// Null: none is called so.
const Program* program_called(std::string_view name) {
  const auto* at = std::ranges::find(kPrograms, name, &Program::name);
  return at == kPrograms.end() ? nullptr : at;
}

/// The same of what follows "gflow", where short names are names, too.
const Program* program_asked_for(std::string_view name) {
  const auto* at = std::ranges::find_if(kPrograms, [&](const Program& program) {
    return program.name == name || short_name(program.name) == name;
  });
  return at == kPrograms.end() ? nullptr : at;
}

/// Programs of layers above this one, which print their own pages.
constexpr std::array<std::string_view, 3> kOthers = {"gflowd", "gflow-kube", "gflow-device-plugin"};

/// Commands that are no programs, in the order of gflow's table.
constexpr std::array kOwnPages = {"spec", "lab", "doctor", "man"};

/// What is written by hand has a page, too.
constexpr std::string_view kFilePage = "gflow.toml";

/// Returns only if there is no such program.
Result<int> become(const std::string& name, Context& context) {
  context.out.flush();
  const std::string program = os::program_directory() + "/" + name;
  (void)::execl(program.c_str(), name.c_str(), "__man", nullptr);
  return os::errno_error("run", program);
}

/// This again, into man(1) where there is one. Returns only where there is no shell.
void show_page(const std::string& name) {
  const std::string gflow = os::program_directory() + "/gflow";
  constexpr const char* kShow =
      R"("$0" man "$1" | if command -v man >/dev/null 2>&1; then man -l -; else cat; fi)";
  (void)::execl("/bin/sh", "sh", "-c", kShow, gflow.c_str(), name.c_str(), nullptr);
}

Result<int> run_man(const Invocation& invocation, Context& context) {
  const std::string& name = invocation.words.front();
  if (context.out_is_terminal) show_page(name);
  if (std::ranges::find(kOthers, name) != kOthers.end()) return become(name, context);
  if (name == kFilePage) {
    context.out << man_page(gflow_toml_format(), kVersion);
    return 0;
  }
  if (const Program* program = program_called(name)) {
    context.out << man_page(program->command(), name, kVersion);
    return 0;
  }
  const Command gflow = gflow_command();
  const auto sub = std::ranges::find_if(
      gflow.subcommands, [&](const Command& one) { return one.page == name || one.name == name; });
  context.out << (sub == gflow.subcommands.end() ? man_page(gflow, "gflow", kVersion)
                                                 : man_page(*sub, "gflow " + sub->name, kVersion));
  return 0;
}

/// All there is a page about, and the short names of gflow's own commands.
std::vector<std::string> page_names() {
  std::vector<std::string> names = {"gflow"};
  names.insert(names.end(), kOthers.begin(), kOthers.end());
  for (const Program& program : kPrograms) names.emplace_back(program.name);
  for (const char* own : kOwnPages) {
    names.push_back(std::string("gflow-") + own);
    names.emplace_back(own);
  }
  names.emplace_back(kFilePage);
  return names;
}

Command man_command() {
  return {
      .name = "man",
      .summary = tr("show the man page of a command, or print it as roff where nobody looks"),
      .usage = {"COMMAND"},
      .words = {.name = "COMMAND",
                .help = tr("gflow or one of its commands, or gflow.toml."),
                .least = 1,
                .most = 1,
                .complete = Complete::Choice,
                .choices = page_names()},
      .common = Common::Basic,
      .examples = {{"gflow man gbatch", tr("read a man page")},
                   {"gflow man gflow.toml", tr("read what can be configured")},
                   {"gflow man gbatch > gbatch.1", tr("have it in a file")}},
      .run = run_man,
  };
}

}  // namespace

Command gflow_command() {
  Command command{
      .name = "gflow",
      .summary = tr("share the GPUs of a machine"),
      .usage = {"COMMAND [options]"},
      .description =
          tr("gflow queues jobs and allocates each the GPUs it requests. 'gflowd up' starts the "
             "daemon. Most of the commands below are also programs of their own: 'gflow queue' is "
             "gqueue."),
      .common = Common::Basic,
      .examples = {{"gflowd up", tr("start the daemon")},
                   {"gbatch --gpus 1 python train.py", tr("submit a job")},
                   {"gqueue", tr("list the queue")},
                   {"gflow doctor", tr("check what is missing on this machine")}},
      .notes = {{tr("Completion"),
                 tr("'gflow completion bash|zsh|fish' prints the completion script for a shell; so "
                    "does 'completion' of every other command.")}},
      .run = run_help,
  };
  for (const Program& program : kPrograms) {
    command.subcommands.push_back(program.command());
    command.subcommands.back().page = program.name;
    command.subcommands.back().aliases.emplace_back(short_name(program.name));
  }
  for (auto make : {spec_command, lab_command, doctor_command, man_command}) {
    Command own = make();
    own.page = "gflow-" + own.name;
    command.subcommands.push_back(std::move(own));
  }
  return command;
}

int multicall_main(int argc, char** argv) {
  choose_language();
  const std::vector<std::string> all(argv, argv + argc);
  const std::string called = all.empty() ? "gflow" : all[0].substr(all[0].rfind('/') + 1);
  const std::span<const std::string> arguments =
      std::span(all).subspan(std::min<std::size_t>(all.size(), 1));
  if (const Program* program = program_called(called)) {
    return run_command(program->command(), arguments);
  }
  if (!arguments.empty()) {
    if (const Program* program = program_asked_for(arguments[0])) {
      return run_command(program->command(), arguments.subspan(1));
    }
  }
  return run_command(gflow_command(), arguments);
}

}  // namespace gflow::cli
