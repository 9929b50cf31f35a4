// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <ostream>

#include "base/version.h"
#include "cli/commands.h"
#include "cli/doctor/checks.h"
#include "command/context.h"
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

void append(std::vector<Check>& checks, std::vector<Check> more) {
  for (Check& check : more) checks.push_back(std::move(check));
}

std::vector<Check> examine(Context& context) {
  const Result<api::DaemonView> daemon = context.daemon().daemon();
  std::vector<Check> checks = {check_daemon(daemon, kVersion)};
  if (daemon) {
    if (const auto machine = context.daemon().machine()) append(checks, check_gpus(*machine));
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
  append(checks,
         check_state(state_directory(daemon ? daemon->state_dir : os::user_paths().state_dir)));
  checks.push_back(check_helper("gflow-shim", os::helper_program("gflow-shim"), Level::Fail));
  checks.push_back(check_helper("gflow-gpumon", os::helper_program("gflow-gpumon"), Level::Warn));
  return checks;
}

Result<int> run_doctor(const Invocation&, Context& context) {
  const std::vector<Check> checks = examine(context);
  context.out << (context.json ? checks_json(checks) : checks_text(checks, context.paint));
  return exit_code_of(checks);
}

}  // namespace

Command doctor_command() {
  return {
      .name = "doctor",
      .summary = "say what is missing on this machine and what it costs",
      .usage = {"[options]"},
      .description =
          "Looks at the daemon, the GPUs, what can be enforced on jobs, logout, disk and "
          "installation. Each line is ok, warn or fail, with what to do below it. The exit "
          "code is 1 if anything failed.",
      .run = run_doctor,
  };
}

}  // namespace gflow::cli
