// SPDX-License-Identifier: Apache-2.0
#include "daemon/background.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "base/exec_list.h"
#include "base/text.h"
#include "base/translate.h"
#include "os/fd.h"
#include "os/file.h"

namespace gflow::daemon {
namespace {

/// The number of the pipe's end in the child; fixed, so that it can stand in its arguments.
constexpr int kReadyFd = 3;

/// Everything written until the other side closes.
Result<std::string> read_to_end(int fd) {
  std::string text;
  std::array<char, 4096> buffer{};
  while (true) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return os::errno_error("wait for gflowd");
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

/// Whether nothing is to be read for longer than a person waits in silence.
bool is_slow(int fd) {
  constexpr int kSilentMs = 2000;
  pollfd end{fd, POLLIN, 0};
  return ::poll(&end, 1, kSilentMs) == 0;
}

/// Attributes and file actions of posix_spawn, freed together.
class SpawnPlan {
 public:
  SpawnPlan() {
    (void)::posix_spawn_file_actions_init(&actions_);
    (void)::posix_spawnattr_init(&attributes_);
    (void)::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID);
  }
  ~SpawnPlan() {
    (void)::posix_spawn_file_actions_destroy(&actions_);
    (void)::posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  posix_spawn_file_actions_t* actions() { return &actions_; }
  posix_spawnattr_t* attributes() { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

/// What it wrote before it could tell its starter anything, such as that a file is not there; its
/// exit code is that of the error.
Error error_of(pid_t pid, const os::Fd& standard_error, const std::string& log) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  const int exit = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  const bool is_told = exit > 0 && exit <= static_cast<int>(Code::KeyReused);
  const Code code = is_told ? static_cast<Code>(exit) : Code::Failure;
  (void)::lseek(standard_error.get(), 0, SEEK_SET);
  const auto written = read_to_end(standard_error.get());
  std::string_view text = trim(written ? std::string_view(*written) : std::string_view());
  if (text.empty()) {
    return {code, tr_format("gflowd ended before it answered; see its log: {}", printable(log))};
  }
  constexpr std::string_view kProgram = "gflowd: ";
  if (text.starts_with(kProgram)) text.remove_prefix(kProgram.size());
  return {code, std::string(text)};
}

/// Of the write end of a pipe.
bool has_no_reader(int fd) {
  pollfd end{fd, 0, 0};
  return ::poll(&end, 1, 0) > 0 && (end.revents & POLLERR) != 0;
}

}  // namespace

Result<void> start_in_background(std::vector<std::string> arguments,
                                 const std::string& log,
                                 const std::function<void(int pid)>& say) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return os::errno_error("create a pipe");
  const os::Fd read_end(ends[0]);
  os::Fd write_end(ends[1]);

  arguments.insert(arguments.begin(), "gflowd");
  arguments.push_back(fmt::format("--ready-fd={}", kReadyFd));
  const std::vector<char*> argv = exec_list(arguments);

  const os::Fd standard_error(::memfd_create("gflowd: standard error", MFD_CLOEXEC));
  if (!standard_error.valid()) return os::errno_error("make room for what gflowd says");
  SpawnPlan plan;
  for (const int standard : {0, 1}) {
    (void)::posix_spawn_file_actions_addopen(plan.actions(), standard, "/dev/null", O_RDWR, 0);
  }
  (void)::posix_spawn_file_actions_adddup2(plan.actions(), standard_error.get(), 2);
  (void)::posix_spawn_file_actions_adddup2(plan.actions(), write_end.get(), kReadyFd);
  (void)::posix_spawn_file_actions_addchdir_np(plan.actions(), "/");
  pid_t pid = 0;
  const int error = ::posix_spawn(
      &pid, "/proc/self/exe", plan.actions(), plan.attributes(), argv.data(), environ);
  if (error != 0) {
    errno = error;
    return os::errno_error("start gflowd");
  }
  write_end.reset();
  if (is_slow(read_end.get())) say(pid);
  const std::string said = GF_TRY(read_to_end(read_end.get()));
  if (said == "ready\n") return {};
  if (said.empty()) return std::unexpected(error_of(pid, standard_error, log));
  // "<code> <message>", as tell_starter() writes it.
  const std::size_t space = said.find(' ');
  const auto code = parse_number(std::string_view(said).substr(0, space)).value_or(1);
  return fail(static_cast<Code>(code), std::string(trim(said.substr(space + 1))));
}

Result<void> tell_starter(int ready_fd, const Error* error) {
  if (ready_fd < 0) return {};
  const os::Fd fd(ready_fd);
  const std::string said =
      error == nullptr ? "ready\n"
                       : fmt::format("{} {}\n", static_cast<int>(error->code), error->message);
  auto written = os::write_all(fd.get(), said);
  if (written || has_no_reader(fd.get())) {
    if (error == nullptr) {  // nobody reads it from now on
      const os::Fd nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
      (void)::dup2(nowhere.get(), 2);
    }
    return {};
  }
  return with_context(written.error(), "tell who started gflowd that it answers");
}

}  // namespace gflow::daemon
