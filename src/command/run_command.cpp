// SPDX-License-Identifier: Apache-2.0
#include "command/run_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <set>

#include "base/text.h"
#include "base/translate.h"
#include "base/version.h"
#include "command/completion.h"
#include "command/context.h"
#include "command/help.h"

namespace gflow::cli {

namespace {

/// A GPU as 'gctl drain' and 'gctl resume' take it: "3", with several nodes "n1:3".
std::string gpu_word(const api::MachineView& machine, const std::string& node, int gpu) {
  return machine.nodes.size() > 1 ? fmt::format("{}:{}", node, gpu) : fmt::format("{}", gpu);
}

std::vector<Candidate> present_gpus(const api::MachineView& machine) {
  std::vector<Candidate> found;
  for (const api::NodeView& node : machine.nodes) {
    for (const api::DeviceView& view : node.devices) {
      const Device& device = view.device;
      if (!view.drained) found.push_back({gpu_word(machine, node.name, device.index), device.uuid});
    }
    for (const api::MigRoomView& room : node.mig_room) {
      if (!room.drained) found.push_back({room.gpu, room.model_short});
    }
  }
  return found;
}

/// Those that are not present by their UUID.
std::vector<Candidate> drained_gpus(const api::MachineView& machine,
                                    const std::vector<api::DrainView>& drains) {
  std::vector<Candidate> found;
  for (const auto& [drain, present] : drains) {
    if (drain.is_of_node()) continue;
    const bool by_index = drain.gpu && (present || drain.uuid.empty());
    found.push_back({by_index ? gpu_word(machine, drain.node, *drain.gpu) : drain.uuid,
                     by_index ? drain.uuid : drain.reason});
  }
  return found;
}

/// None if the daemon does not answer.
std::vector<Candidate> look_up_gpus(client::Client daemon, Complete kind) {
  const auto machine = daemon.machine();
  if (!machine) return {};
  if (kind == Complete::Gpu) return present_gpus(*machine);
  const auto drains = daemon.drains();
  return drains ? drained_gpus(*machine, *drains) : std::vector<Candidate>();
}

/// Jobs, users and GPUs for the word being completed; none if the daemon does not answer.
std::vector<Candidate> look_up(Complete kind) {
  Context context(std::cout, std::cerr);
  if (kind == Complete::Gpu || kind == Complete::DrainedGpu) {
    return look_up_gpus(context.another_daemon(), kind);
  }
  std::vector<Candidate> found;
  JobQuery query;
  query.statuses = kNotEnded;
  query.fields = {"user", "status", "spec.name"};
  const Result<api::JobPage> page = context.another_daemon().jobs(query);  // silently
  if (!page) return found;
  std::set<std::string> users;
  for (const api::JobView& job : page->jobs) {
    if (kind == Complete::User && users.insert(job.spec.user.name).second) {
      found.push_back({job.spec.user.name, ""});
    }
    if (kind == Complete::Job) {
      found.push_back({fmt::format("{}", job.id.value),
                       fmt::format("{} {}", status_code(job.status), job.spec.name)});
    }
  }
  return found;
}

/// Whether it begins with a place in a file, "gflow.toml:3: ": what is wrong is there, and no help
/// of a command tells of it.
bool names_a_place(std::string_view message) {
  const std::string_view place = message.substr(0, message.find(": "));
  const std::size_t colon = place.rfind(':');
  return place.size() < message.size() && colon != std::string_view::npos &&
         parse_number(place.substr(colon + 1));
}

int print_error(const Invocation& invocation, Context& context, const Error& error) {
  std::cout.flush();
  context.err << fmt::format("{}: {}\n", invocation.program, error.message);
  if (error.code == Code::Usage && !names_a_place(error.message)) {
    context.err << tr_format("Try '{} --help'.\n", invocation.program);
  }
  return exit_code(error.code);
}

/// Everything written reached the stream, or it is an error: a full disk must not look like
/// success.
int finish(const Invocation& invocation, Context& context, int code) {
  std::cout.flush();
  if (std::cout || code != 0) return code;
  context.err << tr_format("{}: cannot write to standard output\n", invocation.program);
  return static_cast<int>(Code::Failure);
}

/// Verbs every program has besides its table: completion and its man page.
const std::string* built_in(std::span<const std::string> arguments) {
  if (arguments.empty()) return nullptr;
  const std::string& verb = arguments.front();
  const bool known = verb == "completion" || verb == "__complete" || verb == "__man";
  return known ? &verb : nullptr;
}

Result<int> run_built_in(const Command& command, std::span<const std::string> arguments) {
  const std::string& verb = arguments.front();
  if (verb == "__man") {
    std::cout << man_page(command, command.name, kVersion);
    return 0;
  }
  if (verb == "__complete") {
    std::cout << completion_answer(complete(command, arguments.subspan(1), look_up));
    return 0;
  }
  if (arguments.size() != 2)
    return fail(Code::Usage, tr("completion needs a shell: bash, zsh or fish"));
  std::cout << GF_TRY(completion_script(command.name, arguments[1]));
  return 0;
}

}  // namespace

std::string version_line(const std::string& program) {
  return fmt::format("{} {}\n", program, kVersion);
}

int run_command(const Command& command, std::span<const std::string> arguments) {
  Context context(std::cout, std::cerr);
  Invocation invocation;
  invocation.command = &command;
  invocation.program = command.name;
  const auto go = [&]() -> Result<int> {
    if (built_in(arguments) != nullptr) return run_built_in(command, arguments);
    Result<Invocation> parsed = parse(command, arguments);
    if (!parsed) {
      invocation.program = program_of(command, arguments);
      return std::unexpected(std::move(parsed).error());
    }
    invocation = *std::move(parsed);
    if (invocation.has("help")) {
      std::cout << help_text(*invocation.command, invocation.program, context.columns);
      return 0;
    }
    if (invocation.has("version")) {
      std::cout << version_line(command.name);
      return 0;
    }
    GF_CHECK(context.configure(invocation));
    return invocation.command->run(invocation, context);
  };
  try {
    const Result<int> code = go();
    if (!code) return print_error(invocation, context, code.error());
    return finish(invocation, context, *code);
  } catch (const std::exception& thrown) {
    return print_error(invocation, context, Error{Code::Failure, thrown.what()});
  }
}

Result<int> run_help(const Invocation& invocation, Context& context) {
  if (context.json) return fail(Code::Usage, tr("no command given"));
  context.out << help_text(*invocation.command, invocation.program, context.columns);
  return 0;
}

int run_command(const Command& command, int argc, char** argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  return run_command(command, arguments);
}

}  // namespace gflow::cli
