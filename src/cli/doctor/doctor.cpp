// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <ostream>

#include "base/exec_list.h"
#include "base/translate.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/doctor/checks.h"
#include "command/context.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/paths.h"
#include "os/user.h"

namespace gflow::cli {

namespace {

StateDirectory state_directory(std::string path) {
  StateDirectory directory{std::move(path), {}, {}};
  // Before the first start it is not there yet: its file system is that of what will hold it.
  std::filesystem::path there = directory.path;
  while (!there.empty() && there != there.root_path() && !os::exists(there.string())) {
    there = there.parent_path();
  }
  directory.network_file_system = os::network_file_system(there.string());
  std::error_code error;
  const auto space = std::filesystem::space(there, error);
  if (!error) directory.free_bytes = space.available;
  return directory;
}

/// The copies of the database in its directory, by their names; empty if it cannot be read (that of
/// another user's daemon) or there is no database.
std::optional<Backups> backups_in(const std::string& state_dir) {
  constexpr std::string_view kPrefix = "gflow.db.backup-2";
  const auto names = os::names_in(state_dir);
  if (!names || !os::exists(state_dir + "/gflow.db")) return std::nullopt;
  Backups backups;
  std::string newest;
  for (const std::string& name : *names) {
    if (!name.starts_with(kPrefix)) continue;
    ++backups.count;
    newest = std::max(newest, name);
  }
  if (newest.empty()) return backups;
  backups.newest = state_dir + "/" + newest;
  std::error_code error;
  const auto written = std::filesystem::last_write_time(backups.newest, error);
  if (error) return std::nullopt;
  const auto age = std::filesystem::file_time_type::clock::now() - written;
  backups.age = std::max(std::chrono::floor<std::chrono::seconds>(age), std::chrono::seconds(0));
  return backups;
}

void append(std::vector<Check>& checks, std::vector<Check> more) {
  for (Check& check : more) checks.push_back(std::move(check));
}

/// Those one may see; none where that is not told.
std::vector<api::TokenView> tokens_known_to(Context& context) {
  const auto text = context.daemon().call("GET", "/api/v1/tokens");
  if (!text) return {};
  return api::read_tokens(*text).value_or(std::vector<api::TokenView>());
}

std::vector<Check> examine(Context& context) {
  const Result<api::DaemonView> daemon = context.daemon().daemon();
  std::vector<Check> checks = {check_daemon(daemon, kVersion)};
  if (daemon) {
    if (const auto machine = context.daemon().machine()) {
      for (const api::NodeView& node : machine->nodes) append(checks, check_gpus(node));
    }
    append(checks, check_listening(*daemon, os::now().wall));
    append(checks, check_tokens(tokens_known_to(context)));
    append(checks, check_enforcement(*daemon));
  } else {
    checks.push_back(check_driver(os::exists("/proc/driver/nvidia/version")));
  }
  const std::string user = os::own_account().name;
  Session session;
  session.user = user;
  session.mode = daemon ? daemon->mode : "user";
  session.systemd = os::is_directory("/run/systemd/system");
  session.linger = os::exists("/var/lib/systemd/linger/" + user);
  checks.push_back(check_session(session));
  const std::string state_dir = daemon ? daemon->state_dir : os::user_paths().state_dir;
  append(checks, check_state(state_directory(state_dir)));
  if (const auto backups = backups_in(state_dir)) checks.push_back(check_backups(*backups));
  checks.push_back(check_helper("gflow-shim", os::helper_program("gflow-shim"), Level::Fail));
  checks.push_back(check_helper("gflow-gpumon", os::helper_program("gflow-gpumon"), Level::Warn));
  return checks;
}

/// The database of the user, or of the machine where root has none of its own.
bool means_system(const Invocation& typed) {
  if (typed.has("system")) return true;
  const std::string ids = ".ids";
  return os::own_account().uid == 0 && !os::exists(os::user_paths().database() + ids) &&
         os::exists(os::system_paths().database() + ids);
}

/// gflowd does it: it alone touches the database.
Result<int> run_recover(const Invocation& typed, Context& context) {
  const std::string gflowd = os::program_directory() + "/gflowd";
  std::vector<std::string> arguments = {"gflowd", "--recover"};
  if (means_system(typed)) arguments.emplace_back("--system");
  if (context.json) arguments.emplace_back("--json");
  context.out.flush();
  (void)::execv(gflowd.c_str(), exec_list(arguments).data());
  return os::errno_error("run", gflowd);
}

Result<int> run_doctor(const Invocation& typed, Context& context) {
  GF_CHECK(context.needs_own_machine(
      tr("it looks at disk, session and programs of this one; log in there, and run it there")));
  if (typed.has("recover")) return run_recover(typed, context);
  const std::vector<Check> checks = examine(context);
  context.out << (context.json ? checks_json(checks)
                               : checks_text(checks, context.paint, context.columns));
  return exit_code_of(checks);
}

}  // namespace

Command doctor_command() {
  return {
      .name = "doctor",
      .summary = tr("check what is missing on this machine, and its consequences"),
      .usage = {"[options]"},
      .description =
          tr("Checks the daemon, the GPUs, which limits can be enforced on jobs, logout, disk "
             "space and installation. Each line is ok, warn or fail, followed by what to do about "
             "it. The exit code is 1 if any check failed. --recover keeps the damaged files beside "
             "the new ones and reports what could be recovered and what could not."),
      .options = {{.name = "recover",
                   .letters = "",
                   .help = tr("Rebuild a database that gflowd refuses to open, from its readable "
                              "parts, the last backup and the running jobs. gflowd must be down.")},
                  {.name = "system",
                   .letters = "",
                   .help = tr("With --recover: rebuild the database of 'gflowd up --system'."),
                   .needs = "recover"}},
      .run = run_doctor,
  };
}

}  // namespace gflow::cli
