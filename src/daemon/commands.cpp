// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <ostream>

#include "api/account.h"
#include "base/text.h"
#include "command/context.h"
#include "daemon/background.h"
#include "daemon/daemon.h"
#include "daemon/options.h"
#include "daemon/recover.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/user.h"
#include "settings/settings.h"

namespace gflow::daemon {
namespace {

using cli::Command;
using cli::Context;
using cli::Invocation;
using namespace std::chrono_literals;

Result<Options> options_of(const Invocation& typed) {
  Options options;
  options.system = typed.has("system");
  if (options.system && os::own_account().uid != 0) {
    return fail(Code::Permission,
                "--system is for root: one daemon for all users, which runs jobs as their owners");
  }
  options.paths = options.system ? os::system_paths() : os::user_paths();
  if (const auto socket = os::environment("GFLOW_SOCKET"); socket && !socket->empty()) {
    options.paths.socket = *socket;
    options.paths.run_dir = socket->substr(0, socket->find_last_of('/'));
  }
  std::string config = typed.get("gflow-config");
  if (config.empty()) config = os::environment("GFLOW_CONFIG").value_or("");
  if (!config.empty()) {
    options.paths.config_file = config;
    options.config_required = true;
  }
  for (const settings::Setting& setting : settings::table()) {
    const std::string flag(setting.flag);
    if (!flag.empty() && typed.has(flag)) options.flags[setting.full_name()] = typed.get(flag);
  }
  if (const auto ready = parse_number(typed.get("ready-fd"))) {
    options.ready_fd = static_cast<int>(*ready);
  }
  return options;
}

std::string absolute_file(const std::string& name) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(name, error);
  return error ? name : absolute.string();
}

/// With the files it names as absolute paths: a daemon in the background starts at "/".
Invocation with_absolute_files(Invocation typed) {
  constexpr std::string_view kSimulated = "sim:";
  std::string config = typed.get("gflow-config");
  if (config.empty()) config = os::environment("GFLOW_CONFIG").value_or("");
  if (!config.empty()) typed.options["gflow-config"] = {absolute_file(config)};
  const std::string devices = typed.get("devices");
  if (devices.starts_with(kSimulated)) {
    const std::string rest = devices.substr(kSimulated.size());
    const bool is_file = rest.ends_with(".yaml") || rest.ends_with(".yml") || rest.contains('/');
    if (is_file) typed.options["devices"] = {std::string(kSimulated) + absolute_file(rest)};
  }
  return typed;
}

/// The arguments that make a daemon in the background like this one.
std::vector<std::string> arguments_of(const Invocation& typed) {
  std::vector<std::string> arguments;
  if (typed.has("system")) arguments.emplace_back("--system");
  const auto add = [&](const std::string& name) {
    if (typed.has(name)) arguments.push_back(fmt::format("--{}={}", name, typed.get(name)));
  };
  add("gflow-config");
  for (const settings::Setting& setting : settings::table()) {
    if (!setting.flag.empty()) add(std::string(setting.flag));
  }
  return arguments;
}

Result<int> run_recover(const Options& options, Context& context) {
  const Recovery done = GF_TRY(recover(options.paths, os::now()));
  context.out << (context.json ? recovery_json(done) : recovery_text(done));
  return 0;
}

Result<int> run_foreground(const Invocation& typed, Context& context) {
  const Options options = GF_TRY(options_of(typed));
  if (typed.has("recover")) return run_recover(options, context);
  auto daemon = Daemon::start(options);
  if (!daemon) {
    (void)tell_starter(options.ready_fd, &daemon.error());
    return std::unexpected(std::move(daemon).error());
  }
  GF_CHECK(tell_starter(options.ready_fd, nullptr));
  GF_CHECK((*daemon)->run());
  return 0;
}

std::string summary(const api::MachineView& machine) {
  std::size_t gpus = 0;
  for (const api::NodeView& node : machine.nodes) gpus += node.devices.size();
  if (gpus == 0) {
    const std::string note = machine.nodes.empty() ? "" : machine.nodes.front().note;
    return note.empty() ? "no GPUs" : fmt::format("no GPUs: {}", printable(note));
  }
  return fmt::format("{} GPU{}, {} CPUs, {} memory",
                     gpus,
                     gpus == 1 ? "" : "s",
                     machine.cpus,
                     memory_text(machine.memory));
}

Result<int> up(const Invocation& as_typed, Context& context) {
  const Invocation typed = with_absolute_files(as_typed);
  const Options options = GF_TRY(options_of(typed));
  if (options.system) context.set_socket(options.paths.socket);
  if (const auto running = context.daemon().daemon()) {
    if (typed.has("devices") && typed.get("devices") != running->devices) {
      return fail(Code::WrongState,
                  fmt::format("gflowd runs already (pid {}) with devices '{}'; "
                              "'gflowd restart --devices {}' changes them, and jobs go on",
                              running->pid,
                              printable(running->devices),
                              printable(typed.get("devices"))));
    }
    context.out << fmt::format("gflowd runs already (pid {})\n", running->pid);
    return 0;
  }
  GF_CHECK(start_in_background(arguments_of(typed)));
  const auto daemon = GF_TRY(context.daemon().daemon());
  const auto machine = GF_TRY(context.daemon().machine());
  context.out << fmt::format("gflowd is up (pid {}): {}\n", daemon.pid, summary(machine));
  return 0;
}

Result<void> stop_and_wait(Context& context) {
  const auto daemon = GF_TRY(context.daemon().daemon());
  GF_CHECK(context.daemon().stop_daemon());
  return wait_until_gone(daemon.pid, 30s);
}

Result<int> down(const Invocation& /*typed*/, Context& context) {
  const auto machine = context.daemon().machine();
  GF_CHECK(stop_and_wait(context));
  const std::size_t running = machine ? machine->running.size() : 0;
  context.out << (running == 0 ? std::string("gflowd is down\n")
                               : fmt::format("gflowd is down; {} job{} on, and {} taken over "
                                             "when it is up again\n",
                                             running,
                                             running == 1 ? " goes" : "s go",
                                             running == 1 ? "is" : "are"));
  return 0;
}

/// Flags that are not given anew stay as they were; what the file says may have changed.
Result<void> keep_flags(Context& context, Invocation& again) {
  const std::string body = GF_TRY(context.daemon().call("GET", "/api/v1/settings"));
  const auto running = GF_TRY(api::read_settings(body));
  for (const settings::Setting& setting : settings::table()) {
    const std::string flag(setting.flag);
    if (flag.empty() || again.has(flag)) continue;
    const auto was = std::ranges::find(running, setting.full_name(), &api::SettingView::name);
    if (was == running.end() || was->origin != "--" + flag) continue;
    again.options[flag] = {was->value};
  }
  return {};
}

Result<int> restart(const Invocation& typed, Context& context) {
  const Options options = GF_TRY(options_of(typed));
  if (options.system) context.set_socket(options.paths.socket);
  Invocation again = typed;
  if (const auto running = context.daemon().daemon()) {
    GF_CHECK(keep_flags(context, again));
    if (running->mode == "system") again.options["system"] = {""};
    GF_CHECK(stop_and_wait(context));
  } else if (running.error().code != Code::Unreachable) {
    return std::unexpected(running.error());
  }
  return up(again, context);
}

Result<int> reload(const Invocation& /*typed*/, Context& context) {
  GF_CHECK(context.daemon().reload_daemon());
  context.out << "configuration read again\n";
  return 0;
}

Result<int> status(const Invocation& /*typed*/, Context& context) {
  if (context.json) {
    context.out << GF_TRY(context.daemon().call("GET", "/api/v1/daemon")) << '\n';
    return 0;
  }
  const auto daemon = context.daemon().daemon();
  if (!daemon) {
    context.out << "Status: Not running\n";
    return std::unexpected(daemon.error());
  }
  const auto machine = GF_TRY(context.daemon().machine());
  context.out << fmt::format(
      "Status: Running\nPID: {}\nVersion: {}\nMode: {}\nUptime: {}\nSocket: {}\nState: {}\n"
      "Configuration: {}{}\nDevices: {} ({})\nJobs: {} running, {} queued, {} on hold\n",
      daemon->pid,
      daemon->version,
      daemon->mode,
      duration_text(daemon->up_time),
      daemon->socket,
      daemon->state_dir,
      daemon->config_path,
      os::exists(daemon->config_path) ? "" : " (not there: defaults)",
      daemon->devices,
      summary(machine),
      machine.running.size(),
      machine.queued,
      machine.held);
  for (const std::string& warning : daemon->warnings) context.note(warning);
  return 0;
}

std::vector<cli::Option> start_options() {
  std::vector<cli::Option> options;
  for (const settings::Setting& setting : settings::table()) {
    if (setting.flag.empty()) continue;
    options.push_back(
        {.name = std::string(setting.flag), .value = "VALUE", .help = std::string(setting.help)});
  }
  options.push_back(
      {.name = "system",
       .letters = "",
       .help = "one daemon for all users of the machine (root only): /etc/gflow, /var/lib/gflow, "
               "/run/gflow"});
  return options;
}

Command subcommand(std::string name,
                   std::vector<std::string> aliases,
                   std::string about,
                   Result<int> (*run)(const Invocation&, Context&)) {
  Command command;
  command.name = std::move(name);
  command.aliases = std::move(aliases);
  command.summary = std::move(about);
  command.usage = {"[options]"};
  command.run = run;
  return command;
}

}  // namespace

Command gflowd_command() {
  Command command =
      subcommand("gflowd", {}, "the daemon that queues and runs jobs", run_foreground);
  command.usage = {"up|down|status|restart|reload [options]", "[options]"};
  command.description =
      "Without a command, runs in the foreground until a signal: SIGTERM or SIGINT ends it, SIGHUP "
      "reads the configuration again. Jobs go on when the daemon ends, however it ends; the next "
      "one "
      "takes them over.";
  command.options = start_options();
  command.options.push_back({.name = "ready-fd",
                             .letters = "",
                             .value = "FD",
                             .help = "where to say that the daemon answers",
                             .hidden = true});
  command.options.push_back({.name = "recover",
                             .letters = "",
                             .help = "what 'gflow doctor --recover' does",
                             .hidden = true});
  Command start =
      subcommand("up", {"start"}, "start in the background; return when it answers", up);
  start.options = start_options();
  Command again = subcommand("restart", {}, "stop, and start again as it was; jobs go on", restart);
  again.options = start_options();
  command.subcommands = {
      std::move(start),
      subcommand("down", {"stop"}, "stop the daemon; jobs go on", down),
      subcommand("status", {}, "say whether it runs, and how", status),
      std::move(again),
      subcommand("reload", {}, "read the configuration again", reload),
  };
  command.examples = {{"gflowd up", "use the GPUs of this machine"},
                      {"gflowd up --devices sim:8xH100", "try gflow on a simulated machine"}};
  return command;
}

}  // namespace gflow::daemon
