// SPDX-License-Identifier: Apache-2.0
#include "shim/program.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <vector>

#include "attempt/exit_record.h"
#include "attempt/program.h"
#include "base/exec_list.h"
#include "shim/io.h"
#include "shim/launch.h"

namespace gflow::shim {
namespace {

using attempt::Order;
using attempt::Step;
using Strings = std::vector<std::string>;

/// Without it whoever finds the record concludes that the program never ran.
bool note_pid(int record) {
  const std::string text = std::to_string(::getpid()) + "\n";
  const ssize_t put = ::pwrite(record, text.data(), text.size(), attempt::kExitFileSize);
  if (put >= 0 && put != static_cast<ssize_t>(text.size())) errno = EIO;
  return put == static_cast<ssize_t>(text.size());
}

/// By value: execve(2) wants them without const.
void execute(const std::string& path, Strings arguments, Strings environment, int record) {
  const std::vector<char*> argv = exec_list(arguments);
  const std::vector<char*> envp = exec_list(environment);
  if (note_pid(record)) (void)::execve(path.c_str(), argv.data(), envp.data());
}

/// Runs this program as what starts the processes of the job, each of which runs `command`.
void execute_launcher(const std::string& mode,
                      const Strings& command,
                      const Order& order,
                      int record) {
  Strings arguments = {"gflow-shim", "--launch", mode};
  arguments.insert(arguments.end(), command.begin(), command.end());
  execute("/proc/self/exe", arguments, order.environment, record);
}

/// A program found already, as the job's one process or as each of several.
void execute_found(const std::string& path,
                   const Strings& arguments,
                   const Order& order,
                   int record) {
  const std::string mode = launch_mode(order.environment);
  if (mode.empty()) return execute(path, arguments, order.environment, record);
  Strings command = arguments;
  command.front() = path;
  execute_launcher(mode, command, order, record);
}

/// The first bytes of the script: of a regular file only, and without waiting for one that is a
/// FIFO.
std::optional<std::string> start_of(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY));
  struct stat facts{};
  if (!fd.valid() || ::fstat(fd.get(), &facts) != 0) return std::nullopt;
  errno = EINVAL;
  if (!S_ISREG(facts.st_mode)) return std::nullopt;
  std::array<char, 4096> buffer{};
  const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
  if (got < 0) return std::nullopt;
  return std::string(buffer.data(), static_cast<std::size_t>(got));
}

/// That the interpreter could not be run. Named only if the script asked for it.
LaunchFailure interpreter_failure(int error, const std::optional<attempt::Shebang>& shebang) {
  LaunchFailure failure{.step = Step::RunInterpreter, .error = error};
  std::string_view name = shebang ? std::string_view(shebang->interpreter) : "/bin/sh";
  constexpr std::string_view kWindows = " (the script has Windows line ends)";
  const bool windows = name.ends_with('\r');
  if (windows) name.remove_suffix(1);
  std::string text = in_quotes(name.substr(0, failure.about.size() - kWindows.size() - 3));
  if (windows) text.append(kWindows);
  (void)text.copy(failure.about.data(), failure.about.size() - 1);
  return failure;
}

/// Through its interpreter and not by itself: the state directory may lie on a noexec file system.
LaunchFailure run_script(const Order& order, int record) {
  const auto start = start_of(order.script);
  if (!start) return {.step = Step::ReadScript, .error = errno};
  Strings arguments;
  const auto shebang = attempt::parse_shebang(*start);
  if (shebang) {
    arguments.push_back(shebang->interpreter);
    if (!shebang->argument.empty()) arguments.push_back(shebang->argument);
  } else if (start->starts_with("\x7f"
                                "ELF")) {
    execute_found(order.script, order.argv, order, record);
    return {.step = Step::RunProgram, .error = errno};
  } else {
    arguments.push_back(::access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh");
  }
  const std::string interpreter = arguments.front();
  arguments.push_back(order.script);
  arguments.insert(arguments.end(), order.argv.begin() + 1, order.argv.end());
  execute_found(interpreter, arguments, order, record);
  return interpreter_failure(errno, shebang);
}

/// A file without a magic number is a shell script, as execvp(3) has it.
void run_as_shell_script(const std::string& path, const Order& order, int record) {
  Strings arguments = {"/bin/sh", path};
  arguments.insert(arguments.end(), order.argv.begin() + 1, order.argv.end());
  execute("/bin/sh", arguments, order.environment, record);
}

}  // namespace

LaunchFailure run_program(const Order& order, int record) {
  if (!order.script.empty()) return run_script(order, record);
  if (const std::string mode = launch_mode(order.environment); !mode.empty()) {
    execute_launcher(mode, order.argv, order, record);  // which looks for it on the PATH
    return {.step = Step::RunProgram, .error = errno};
  }
  int error = ENOENT;
  for (const std::string& path : attempt::program_paths(order.argv.front(), order.environment)) {
    execute(path, order.argv, order.environment, record);
    if (errno == ENOEXEC) run_as_shell_script(path, order, record);
    // One that is there but not allowed is the better thing to say than that the next is not there.
    if (errno != ENOENT && errno != ENOTDIR) error = errno;
    if (error != ENOENT && error != EACCES) break;
  }
  return {.step = Step::RunProgram, .error = error};
}

}  // namespace gflow::shim
