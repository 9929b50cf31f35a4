// SPDX-License-Identifier: Apache-2.0
#include "slurm/programs.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/exec_list.h"
#include "base/text.h"
#include "base/translate.h"
#include "core/slurm_text.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/user.h"

namespace gflow::slurm {
namespace {

constexpr int kPatience = 60'000;  // ms; Slurm's own MessageTimeout is less
constexpr std::size_t kMostTold = 1000;

constexpr off_t kMostOutput = 512 << 20;

/// A user's settings of what these commands print and do are not for who reads it.
constexpr auto kNotOurs = std::to_array<std::string_view>(
    {"SQUEUE_", "SCANCEL_", "SCONTROL_", "SLURM_TIME_FORMAT=", "SLURM_BITSTR_LEN=", "TZ="});
/// Of what is submitted: what gbatch does itself.
constexpr auto kOfSubmissions =
    std::to_array<std::string_view>({"SBATCH_WAIT=", "SBATCH_ARRAY_INX="});
/// Where Slurm is, also for who submits an environment without it.
constexpr auto kWhere = std::to_array<std::string_view>({"SLURM_CONF=", "SLURM_CLUSTERS="});

template <typename Names>
bool begins_with_any(std::string_view variable, const Names& names) {
  return std::ranges::any_of(
      names, [variable](std::string_view name) { return variable.starts_with(name); });
}

std::vector<std::string> environment_of(const Call& call) {
  std::vector<std::string> all = call.environment;
  const bool is_ours = all.empty();
  std::erase_if(all, [](const std::string& one) { return begins_with_any(one, kOfSubmissions); });
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view variable = *at;
    if (is_ours ? !begins_with_any(variable, kNotOurs) : begins_with_any(variable, kWhere)) {
      all.emplace_back(variable);
    }
  }
  if (is_ours)
    all.insert(all.end(), {"TZ=UTC", "SLURM_TIME_FORMAT=standard", "SLURM_BITSTR_LEN=0"});
  return all;
}

/// In memory: what is read and written there waits for nobody.
Result<os::Fd> file_with(std::string_view text) {
  os::Fd file(::memfd_create("gflow-slurm", MFD_CLOEXEC));
  if (!file.valid()) return os::errno_error("memfd_create");
  while (!text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0) return os::errno_error("write");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::lseek(file.get(), 0, SEEK_SET) < 0) return os::errno_error("lseek");
  return file;
}

/// The same for what another one writes, who can write no more than fits.
Result<os::Fd> file_for_output() {
  os::Fd file(::memfd_create("gflow-slurm", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return os::errno_error("memfd_create");
  if (::ftruncate(file.get(), kMostOutput) != 0) return os::errno_error("ftruncate");
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_GROW) != 0) return os::errno_error("fcntl");
  return file;
}

/// Up to where it was written: the place in the file is the writer's, too.
Result<std::string> text_in(const os::Fd& file, std::string_view program) {
  const off_t size = ::lseek(file.get(), 0, SEEK_CUR);
  if (size < 0) return os::errno_error("lseek");
  if (size >= kMostOutput) {
    return fail(Code::Exhausted,
                tr_format("{} wrote more than {} MiB", program, kMostOutput >> 20));
  }
  std::string text(static_cast<std::size_t>(size), '\0');
  std::size_t had = 0;
  while (had < text.size()) {
    const ssize_t got = ::pread(file.get(), &text[had], text.size() - had, static_cast<off_t>(had));
    if (got <= 0) return os::errno_error("read");
    had += static_cast<std::size_t>(got);
  }
  return text;
}

struct Files {
  os::Fd in;
  os::Fd out;
  os::Fd err;
};

Result<pid_t> spawn(const Call& call, const Files& files) {
  std::vector<std::string> words = call.argv;
  std::vector<std::string> variables = environment_of(call);
  posix_spawn_file_actions_t actions{};
  (void)::posix_spawn_file_actions_init(&actions);
  (void)::posix_spawn_file_actions_adddup2(&actions, files.in.get(), STDIN_FILENO);
  (void)::posix_spawn_file_actions_adddup2(&actions, files.out.get(), STDOUT_FILENO);
  (void)::posix_spawn_file_actions_adddup2(&actions, files.err.get(), STDERR_FILENO);
  if (call.lock >= 0) {
    (void)::posix_spawn_file_actions_adddup2(&actions, call.lock, call.lock);
  }
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid,
                                   words.front().c_str(),
                                   &actions,
                                   nullptr,
                                   exec_list(words).data(),
                                   exec_list(variables).data());
  (void)::posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return pid;
  if (error != ENOENT) {
    errno = error;
    return os::errno_error("start", words.front());
  }
  return fail(Code::NotFound,
              tr_format("there is no {} here: Slurm's commands are not installed, or not in PATH",
                        words.front()));
}

/// What is told in such words; all else is refused.
struct Words {
  std::string_view text;
  Code code;
};
constexpr auto kWords = std::to_array<Words>({
    {"Unable to contact slurm controller", Code::Unreachable},
    {"Communication connection failure", Code::Unreachable},
    {"Connection refused", Code::Unreachable},
    {"Socket timed out", Code::Unreachable},
    {"Zero Bytes were transmitted", Code::Unreachable},
    {"Unable to establish controller machine", Code::Unreachable},
    {"Access/permission denied", Code::Permission},
    {"Access denied", Code::Permission},
    {"User not permitted", Code::Permission},
    {"Invalid job id", Code::NotFound},
});

Code code_of(std::string_view said) {
  const auto known = std::ranges::find_if(kWords, [said](const Words& words) {
    return said.find(words.text) != std::string_view::npos;
  });
  return known == kWords.end() ? Code::Infeasible : known->code;
}

}  // namespace

Result<Ran> run(const Call& call) {
  const Files files{
      GF_TRY(file_with(call.input)), GF_TRY(file_for_output()), GF_TRY(file_for_output())};
  const pid_t pid = GF_TRY(spawn(call, files));
  const os::Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  pollfd ended{process.get(), POLLIN, 0};
  int ready = ::poll(&ended, 1, kPatience);
  while (ready < 0 && errno == EINTR) ready = ::poll(&ended, 1, kPatience);
  if (ready == 0) (void)::kill(pid, SIGKILL);
  int status = 0;
  (void)::waitpid(pid, &status, 0);
  if (ready == 0) {
    return fail(Code::Timeout, tr_format("{} did not end within a minute", call.argv.front()));
  }
  return Ran{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
             GF_TRY(text_in(files.out, call.argv.front())),
             GF_TRY(text_in(files.err, call.argv.front()))};
}

Error error_of(const Ran& ran, std::string_view program) {
  std::string said;
  for (const std::string_view line :
       fields_between(std::string_view(ran.err).substr(0, kMostTold), '\n')) {
    std::string_view words = trim(line);
    for (const std::string_view before :
         {program, std::string_view(": "), std::string_view("error: ")}) {
      if (words.starts_with(before)) words.remove_prefix(before.size());
    }
    if (words.empty()) continue;
    said += (said.empty() ? "" : "; ") + printable(words);
  }
  return {code_of(said), tr_format("Slurm says: {}", said.empty() ? std::string(program) : said)};
}

Result<std::string> output_of(const Call& call) {
  Ran ran = GF_TRY(run(call));
  if (ran.exit_code != 0) return std::unexpected(error_of(ran, call.argv.front()));
  return std::move(ran.out);
}

}  // namespace gflow::slurm
