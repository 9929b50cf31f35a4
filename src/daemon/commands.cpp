// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.h"

#include <fmt/format.h>

#include <optional>
#include <ostream>

#include "api/account.h"
#include "api/config_view.h"
#include "api/printed.h"
#include "base/text.h"
#include "base/translate.h"
#include "command/context.h"
#include "command/times.h"
#include "command/wrap.h"
#include "daemon/background.h"
#include "daemon/daemon.h"
#include "daemon/daemon_lock.h"
#include "daemon/open_files.h"
#include "daemon/options.h"
#include "daemon/recover.h"
#include "daemon/start_arguments.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/lock_holder.h"
#include "os/user.h"
#include "server/tls_context.h"
#include "settings/settings.h"

namespace gflow::daemon {
namespace {

using cli::Command;
using cli::Context;
using cli::Invocation;
using namespace std::chrono_literals;

Result<int> run_recover(const Options& options, Context& context) {
  const Recovery done = GF_TRY(recover(options.paths, os::now()));
  context.out << (context.json ? recovery_json(done) : recovery_text(done));
  return 0;
}

/// For 'gctl config', which starts without OpenSSL: nothing, or what is wrong with the files.
Result<int> run_check_tls(const std::vector<std::string>& files, Context& context) {
  if (files.size() != 3) return fail(Code::Usage, "--check-tls: certificate, key and client CA");
  const auto done = server::check_tls_files({files[0], files[1], files[2]});
  if (!done) context.out << done.error().message;
  return 0;
}

Result<int> run_foreground(const Invocation& typed, Context& context) {
  if (const auto& files = typed.all("check-tls"); !files.empty()) {
    return run_check_tls(files, context);
  }
  set_messages(nullptr);  // its log and its answers are for everybody
  Options options = GF_TRY(options_of(typed));
  if (typed.has("recover")) return run_recover(options, context);
  if (context.json) return fail(Code::Usage, tr("--json requires a command: 'gflowd up --json'"));
  options.arguments = arguments_of(with_absolute_files(typed));
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
    return note.empty() ? tr("no GPUs") : tr_format("no GPUs: {}", printable(note));
  }
  return tr_count(gpus,
                  "{} GPU, {} CPUs, {} memory",
                  "{} GPUs, {} CPUs, {} memory",
                  gpus,
                  machine.cpus,
                  memory_text(machine.memory));
}

/// A gflowd that has its lock.
struct Target {
  os::Paths paths;
  os::LockHolder holder;
};

/// The one that has the lock of these places; commands talk to it from now on, wherever it listens.
std::optional<Target> aim_at(const os::Paths& paths, Context& context) {
  const auto holder = os::lock_holder(paths.lock());
  if (!holder) return std::nullopt;
  if (!holder->socket.empty()) context.set_socket(holder->socket);
  return Target{paths, *holder};
}

/// The one that down, status and reload are about: with --system the machine's, else at the socket
/// that is named or usual if there is one, else the user's own, else the machine's.
std::optional<Target> aim(const Invocation& typed, Context& context) {
  if (typed.has("system")) {
    const os::Paths paths = os::system_paths();
    if (!os::environment("GFLOW_SOCKET")) context.set_socket(paths.socket);
    return aim_at(paths, context);
  }
  const bool is_there = os::exists(context.socket());
  for (const os::Paths& paths : {os::user_paths(), os::system_paths()}) {
    const auto holder = os::lock_holder(paths.lock());
    if (holder && (!is_there || holder->socket == context.socket())) return aim_at(paths, context);
  }
  return std::nullopt;
}

/// One that was killed may take a while to be gone: it is none that runs.
Result<void> let_die(const os::Paths& paths, Context& context) {
  return wait_for_dying(paths.lock(), [&context](int pid) {
    context.note(tr_format("gflowd (pid {}) was killed and has not quite ended yet; waiting", pid));
  });
}

std::unexpected<Error> deaf(const Target& target) {
  return fail(
      Code::Unreachable,
      tr_format("gflowd (pid {}) is running but does not answer at {}; its log is {}",
                target.holder.pid,
                target.holder.socket.empty() ? tr("its socket") : printable(target.holder.socket),
                printable(target.paths.daemon_log())));
}

/// What runs there, if anything does. One that starts or stops listens to nobody for a moment,
/// which is waited for. Errors: Unreachable for one that goes on like that.
Result<std::optional<api::DaemonView>> find_running(const std::optional<Target>& target,
                                                    Context& context) {
  constexpr auto kLook = 1s;
  constexpr auto kMost = 30s;
  auto running = context.daemon().daemon();
  for (auto waited = 0s;
       target && !running && running.error().code == Code::Unreachable && waited < kMost;
       waited += kLook) {
    if (wait_until_gone(target->holder.pid, kLook)) return std::nullopt;
    if (waited == kLook) {
      context.note(
          tr_format("gflowd (pid {}) is starting or stopping; waiting", target->holder.pid));
    }
    running = context.daemon().daemon();
  }
  if (running) return *std::move(running);
  if (target) return deaf(*target);
  return std::nullopt;
}

/// One that runs, for a program.
Result<int> print_document(Context& context) {
  context.out << GF_TRY(context.daemon().call("GET", "/api/v1/daemon")) << '\n';
  return 0;
}

Result<int> say_up(Context& context) {
  if (context.json) return print_document(context);
  const auto daemon = GF_TRY(context.daemon().daemon());
  const auto machine = GF_TRY(context.daemon().machine());
  context.out << tr_format("gflowd is up (pid {}): {}\nLog: {}\n",
                           daemon.pid,
                           summary(machine),
                           printable(daemon.log_path));
  for (const std::string& warning : daemon.warnings) context.note(printable(warning));
  return 0;
}

/// Why one that was started does not answer yet.
void say_why_not_up(int pid, const os::Paths& paths, Context& context) {
  const std::string log = printable(paths.daemon_log());
  const auto owner = os::lock_owner(paths.lock());
  if (!owner || *owner == pid) {
    return context.note(tr_format("gflowd (pid {}) is starting; waiting. Its log: {}", pid, log));
  }
  const std::string name =
      os::read_file(fmt::format("/proc/{}/comm", *owner)).value_or(std::string());
  context.note(tr_format("waiting for process {} ({}), which has {} locked; the log is {}",
                         *owner,
                         printable(trim(name)),
                         printable(paths.lock()),
                         log));
}

Result<void> start_with(std::vector<std::string> arguments,
                        const os::Paths& paths,
                        Context& context) {
  return start_in_background(std::move(arguments), paths.daemon_log(), [&](int pid) {
    say_why_not_up(pid, paths, context);
  });
}

Result<int> start(const Invocation& typed, const os::Paths& paths, Context& context) {
  GF_CHECK(check_open_files());
  GF_CHECK(start_with(arguments_of(typed), paths, context));
  (void)aim_at(paths, context);
  return say_up(context);
}

/// Whether the user's own that was killed left its socket.
bool left_its_socket(const os::Paths& paths) {
  const auto last = os::read_lock(paths.lock());
  return os::exists(os::own_socket()) || (last && os::exists(last->socket));
}

/// What 'up' is told where one runs: it may be everyone's, where one's own was meant.
Result<int> already_up(const api::DaemonView& running, const Invocation& typed, Context& context) {
  const bool is_everyones = running.mode == "system" && !typed.has("system");
  const std::string devices = typed.get("devices");
  if (devices.empty() || devices == running.devices) {
    if (context.json) return print_document(context);
    context.out << (is_everyones
                        ? tr_format("the gflowd of this machine is already running (pid {}), for "
                                    "all its users\n",
                                    running.pid)
                        : tr_format("gflowd is already running (pid {})\n", running.pid));
    return 0;
  }
  if (is_everyones) {
    return fail(Code::WrongState,
                tr_format("the gflowd of this machine is already running (pid {}), for all its "
                          "users, with devices '{}'; as root 'gflowd restart --system --devices "
                          "{}' changes them for all, and jobs keep running",
                          running.pid,
                          printable(running.devices),
                          printable(devices)));
  }
  return fail(Code::WrongState,
              tr_format("gflowd is already running (pid {}) with devices '{}'; 'gflowd restart {}"
                        "--devices {}' changes them, and jobs keep running",
                        running.pid,
                        printable(running.devices),
                        typed.has("system") ? "--system " : "",
                        printable(devices)));
}

Result<int> up(const Invocation& as_typed, Context& context) {
  const Invocation typed = with_absolute_files(as_typed);
  const Options options = GF_TRY(options_of(typed));
  if (options.system) {
    context.set_socket(options.paths.socket);
  } else if (context.socket() == os::system_paths().socket && left_its_socket(options.paths)) {
    context.set_socket(os::own_socket());  // one's own that was killed is started again
  }
  GF_CHECK(let_die(options.paths, context));
  auto target = aim_at(options.paths, context);
  if (target) GF_CHECK(check_not_stopped(target->holder));
  auto running = GF_TRY(find_running(target, context));
  if (!running) {
    auto started = start(typed, options.paths, context);
    if (started || started.error().code != Code::WrongState) return started;
    // Another one that was started at the same time has the lock.
    target = aim_at(options.paths, context);
    if (target) running = GF_TRY(find_running(target, context));
    if (!running) return started;
  }
  return already_up(*running, typed, context);
}

/// One that was told to; it is said who is waited for where that takes a while.
Result<void> wait_for_end(int pid, Context& context) {
  if (wait_until_gone(pid, 2s)) return {};
  context.note(tr_format("waiting for gflowd (pid {}) to end", pid));
  return wait_until_gone(pid, 30s);
}

/// By its socket, which administrators may; where nothing is answered there by a signal.
Result<void> stop_and_wait(const Result<api::DaemonView>& daemon,
                           const std::optional<Target>& target,
                           Context& context) {
  const auto told =
      daemon ? context.daemon().stop_daemon() : Result<void>(std::unexpected(daemon.error()));
  if (told) return wait_for_end(daemon->pid, context);
  const bool is_silent = told.error().code == Code::Timeout;
  if (!target || (!is_silent && told.error().code != Code::Unreachable)) return told;
  if (is_silent) context.note(tr_format("{}; stopping it by a signal", told.error().message));
  GF_CHECK(tell_to_end(target->holder));
  return wait_for_end(target->holder.pid, context);
}

/// Nobody has the lock and nobody answers.
std::unexpected<Error> not_running(const Invocation& typed) {
  if (typed.has("system")) {
    return fail(
        Code::Unreachable,
        tr("the gflowd of this machine is not running: 'sudo gflowd up --system' starts it"));
  }
  return fail(Code::Unreachable,
              tr("gflowd is not running: 'gflowd up' starts one of your own, 'sudo gflowd up "
                 "--system' one for all users of this machine"));
}

/// Whether there is none to speak of, so that where it would listen tells nobody anything.
bool is_not_running(const std::optional<Target>& target, const Error& error) {
  return !target && error.code == Code::Unreachable && os::own_home();
}

/// Of none that runs, where it would be.
api::DaemonStatusView not_running_status(const Invocation& typed) {
  const os::Paths paths = typed.has("system") ? os::system_paths() : os::user_paths();
  const std::string log = paths.daemon_log();
  return {"not_running", {}, "", paths.state_dir, os::exists(log) ? log : ""};
}

Result<int> down(const Invocation& typed, Context& context) {
  const auto target = aim(typed, context);
  if (target) GF_CHECK(check_not_stopped(target->holder));
  context.daemon().give_up_after(5s);
  const auto daemon = context.daemon().daemon();
  if (!daemon && is_not_running(target, daemon.error())) return not_running(typed);
  std::size_t running = 0;
  if (daemon) {
    const auto machine = context.daemon().machine();
    if (machine) running = machine->running.size();
  }
  GF_CHECK(stop_and_wait(daemon, target, context));
  if (context.json) {
    auto status = not_running_status(typed);
    if (daemon) status = {"not_running", {}, daemon->socket, daemon->state_dir, daemon->log_path};
    if (daemon) status.running_jobs = running;
    context.out << api::write(status) << '\n';
    return 0;
  }
  if (running == 0) {
    context.out << tr("gflowd is down\n");
    return 0;
  }
  context.out << tr_count(
      running,
      "gflowd is down; {} job keeps running, and is taken over when gflowd is up again\n",
      "gflowd is down; {} jobs keep running, and are taken over when gflowd is up again\n",
      running);
  return 0;
}

/// The new one ends the old one once it knows that it can start; one that cannot leaves it alone.
Result<int> replace(const Invocation& typed, int old, Context& context) {
  const Options options = GF_TRY(options_of(typed));
  std::vector<std::string> arguments = arguments_of(typed);
  arguments.emplace_back("--replace");
  const auto started = start_with(std::move(arguments), options.paths, context);
  if (!started) {
    const Error& why = started.error();
    const auto holder = os::lock_holder(options.paths.lock());
    const bool goes_on = holder && holder->pid == old;
    return fail(why.code,
                why.message + (goes_on ? tr_format("; gflowd (pid {}) keeps running unchanged", old)
                                       : tr("; gflowd is down now, and jobs keep running")));
  }
  (void)aim_at(options.paths, context);
  return say_up(context);
}

Result<int> restart(const Invocation& as_typed, Context& context);

/// Where this user never had one and the machine's was killed, that is the one that is meant.
Result<int> restart_systems(Invocation typed, Context& context) {
  if (os::own_account().uid != 0) {
    return fail(Code::Permission,
                tr("the gflowd of this machine is down, and only root starts it: sudo gflowd "
                   "restart; 'gflowd up' starts one of your own"));
  }
  typed.options["system"] = {""};
  return restart(typed, context);
}

Result<int> restart(const Invocation& as_typed, Context& context) {
  Invocation typed = with_absolute_files(as_typed);
  const Options options = GF_TRY(options_of(typed));
  if (options.system) context.set_socket(options.paths.socket);
  GF_CHECK(let_die(options.paths, context));
  auto target = aim_at(options.paths, context);
  if (!target && !options.system) target = aim_at(os::system_paths(), context);
  if (target) GF_CHECK(check_not_stopped(target->holder));
  const auto running = context.daemon().daemon();
  if (!running) {
    if (running.error().code != Code::Unreachable) return std::unexpected(running.error());
    if (target) return deaf(*target);
    if (!options.system && !os::read_lock(options.paths.lock()) &&
        os::read_lock(os::system_paths().lock())) {
      return restart_systems(std::move(typed), context);
    }
    const std::vector<std::string> added = add_last_arguments(typed, options.paths);
    if (!added.empty()) {
      context.note(tr_format("gflowd was not running; it starts with the options it had last: {}",
                             printable(join(added, " "))));
    }
    return up(typed, context);
  }
  const Invocation old = GF_TRY(like(*running, context));
  for (const auto& [name, values] : old.options) typed.options.try_emplace(name, values);
  return replace(typed, running->pid, context);
}

Result<int> reload(const Invocation& typed, Context& context) {
  (void)aim(typed, context);
  GF_CHECK(context.daemon().reload_daemon());
  if (context.json) return print_document(context);
  context.out << tr("configuration reloaded\n");
  const auto left = GF_TRY(context.daemon().daemon()).settings_for_restart;
  if (!left.empty()) context.note(api::for_restart_text(left));
  return 0;
}

/// Of one that cannot be asked.
Result<int> status_unasked(const Invocation& typed,
                           const std::optional<Target>& target,
                           const Error& error,
                           Context& context) {
  if (!target) {
    const api::DaemonStatusView none = not_running_status(typed);
    context.out << (context.json ? api::write(none) + '\n' : context.listing([&] {
      return tr("Status: Not running\n") +
             (none.log_path.empty() ? "" : tr_format("Log: {}\n", none.log_path));
    }));
    if (is_not_running(target, error)) return not_running(typed);
    return std::unexpected(error);
  }
  const api::DaemonStatusView silent = {"not_answering",
                                        target->holder.pid,
                                        target->holder.socket,
                                        target->paths.state_dir,
                                        target->paths.daemon_log()};
  context.out << (context.json ? api::write(silent) + '\n' : context.listing([&] {
    return tr_format("Status: Not answering\nPID: {}\nSocket: {}\nState: {}\nLog: {}\n",
                     *silent.pid,
                     silent.socket,
                     silent.state_dir,
                     silent.log_path);
  }));
  return std::unexpected(error.code == Code::Unreachable ? deaf(*target).error() : error);
}

Result<int> status(const Invocation& typed, Context& context) {
  context.is_for_programs_off_terminal();
  const auto target = aim(typed, context);
  if (target) {
    if (const auto alive = check_not_stopped(target->holder); !alive) {
      return status_unasked(typed, target, alive.error(), context);
    }
  }
  const auto daemon = context.daemon().daemon();
  if (!daemon) return status_unasked(typed, target, daemon.error(), context);
  if (context.json) return print_document(context);
  const auto machine = GF_TRY(context.daemon().machine());
  std::string text = context.listing([&] {
    return tr_format(
        "Status: Running\nPID: {}\nVersion: {}\nMode: {}\nUptime: {}\nSocket: {}\nAPI: {}\n"
        "State: {}\nLog: {}\nConfiguration: {}{}\nDevices: {} ({})\nJobs: {} running, "
        "{} waiting, {} held\n",
        daemon->pid,
        daemon->version,
        api::mode_text(*daemon),
        duration_text(daemon->up_time),
        daemon->socket,
        daemon->api_url.empty() ? tr("on the socket only") : daemon->api_url,
        daemon->state_dir,
        daemon->log_path,
        daemon->config_path,
        os::exists(daemon->config_path) ? "" : tr(" (not found: defaults)"),
        daemon->devices,
        summary(machine),
        machine.running.size(),
        machine.queued,
        machine.held);
  });
  if (!daemon->tls_url.empty()) {
    text += context.listing([&] {
      const auto& expires = daemon->tls_expires;
      return tr_format("API for other machines: {}\nIts certificate: {}\nValid until: {}\n",
                       daemon->tls_url,
                       daemon->tls_fingerprint,
                       expires ? cli::local_text(*expires) : tr("not known"));
    });
  }
  context.out << cli::fit_lines(text, context.columns);
  for (const std::string& warning : daemon->warnings) context.note(warning);
  return 0;
}

std::vector<cli::Option> start_options() {
  std::vector<cli::Option> options;
  for (const settings::Setting& setting : settings::table()) {
    if (setting.flag.empty()) continue;
    options.push_back(
        {.name = std::string(setting.flag), .value = "VALUE", .help = tr(setting.help)});
  }
  options.push_back({.name = "system",
                     .letters = "",
                     .help = tr("run one daemon for all users of the machine (root only): "
                                "/etc/gflow, /var/lib/gflow, /run/gflow")});
  return options;
}

/// Of commands that are about one that runs.
std::vector<cli::Option> which_options() {
  return {{.name = "system",
           .letters = "",
           .help = tr("the daemon of all users of the machine, also where you run one of your "
                      "own")}};
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
      subcommand("gflowd", {}, tr("the daemon that queues and runs jobs"), run_foreground);
  command.usage = {"up|down|status|restart|reload [options]", "[options]"};
  command.description =
      tr("Without a command, runs in the foreground: SIGTERM or SIGINT stops it, SIGHUP reloads "
         "the configuration. Jobs keep running when the daemon ends, however it ends; the next one "
         "takes them over.\n\n"
         "What it keeps, the logs of jobs and its own among it, is in ~/.local/share/gflow, with "
         "--system in /var/lib/gflow; 'gflowd status' names the files.");
  command.options = start_options();
  command.options.push_back({.name = "ready-fd",
                             .letters = "",
                             .value = "FD",
                             .help = tr("where to say that the daemon answers"),
                             .hidden = true});
  command.options.push_back({.name = "replace",
                             .letters = "",
                             .help = tr("end the gflowd that runs once this one can start"),
                             .hidden = true});
  command.options.push_back({.name = "recover",
                             .letters = "",
                             .help = tr("what 'gflow doctor --recover' does"),
                             .hidden = true});
  command.options.push_back({.name = "check-tls",
                             .letters = "",
                             .value = "FILE",
                             .help = tr("what 'gctl config check' asks of certificates"),
                             .repeatable = true,
                             .hidden = true});
  Command start = subcommand(
      "up", {"start"}, tr("start the daemon in the background; return when it answers"), up);
  start.options = start_options();
  Command again = subcommand(
      "restart", {}, tr("restart the daemon with the same options; jobs keep running"), restart);
  again.options = start_options();
  Command stop = subcommand("down", {"stop"}, tr("stop the daemon; jobs keep running"), down);
  Command show = subcommand("status", {}, tr("show whether the daemon runs, and how"), status);
  Command read_again = subcommand("reload", {}, tr("reload the configuration"), reload);
  for (Command* one : {&stop, &show, &read_again}) one->options = which_options();
  command.subcommands = {
      std::move(start), std::move(stop), std::move(show), std::move(again), std::move(read_again)};
  command.examples = {{"gflowd up", tr("use the GPUs of this machine")},
                      {"gflowd up --devices sim:8xH100", tr("try gflow on a simulated machine")}};
  return command;
}

}  // namespace gflow::daemon
