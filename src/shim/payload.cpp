// SPDX-License-Identifier: Apache-2.0
#include "shim/payload.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "shim/identity.h"
#include "shim/landlock.h"
#include "shim/pending_signals.h"
#include "shim/program.h"

namespace gflow::shim {
namespace {

using attempt::Order;
using attempt::Step;

LaunchFailure failed(Step step) { return {.step = step, .error = errno}; }

/// The shim has set all of them to their default, and blocked them.
void unblock_signals() {
  sigset_t none;
  (void)::sigemptyset(&none);
  (void)::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

bool open_as(int target, const char* path, int flags) {
  const int fd = ::open(path, flags, 0600);
  if (fd < 0) return false;
  if (fd == target) return true;
  const bool copied = ::dup2(fd, target) >= 0;
  (void)::close(fd);
  return copied;
}

/// 0, or the errno that keeps the job from writing there.
int write_to(const JobLog& log) {
  if (!log.file.valid()) return log.error;
  const bool done =
      ::dup2(log.file.get(), STDOUT_FILENO) >= 0 && ::dup2(STDOUT_FILENO, STDERR_FILENO) >= 0;
  return done ? 0 : errno;
}

/// By this the processes of the job are known for as long as they live, whatever they do: a limit
/// Linux keeps with each and enforces nowhere, which nobody but root can raise again.
bool take_mark(std::uint64_t mark) {
  const rlimit limit{mark, mark};
  return mark == 0 || ::setrlimit(__RLIMIT_LOCKS, &limit) == 0;
}

/// The daemon raises its own limit; programs are to find the one they expect.
void limit_open_files(std::uint64_t soft) {
  rlimit limit{};
  if (soft == 0 || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(soft, limit.rlim_max);
  (void)::setrlimit(RLIMIT_NOFILE, &limit);  // lowering is always allowed
}

/// Where the control group cannot do it. Not worth failing for: a CPU may have been taken offline
/// since it was chosen.
void bind_to_cpus(const Order& order) {
  if (order.cpus.empty()) return;
  constexpr std::size_t kWordBits = 8 * sizeof(unsigned long);
  std::vector<unsigned long> mask;
  for (const std::uint32_t cpu : order.cpus) {
    if (mask.size() <= cpu / kWordBits) mask.resize(cpu / kWordBits + 1);
    mask[cpu / kWordBits] |= 1UL << (cpu % kWordBits);
  }
  // The bare system call takes a mask of any length; its glibc type ends at 1024 CPUs.
  if (::syscall(SYS_sched_setaffinity, 0, mask.size() * sizeof(unsigned long), mask.data()) == 0) {
    return;
  }
  (void)write_whole(STDERR_FILENO, "gflow: not bound to its CPUs: " + error_name(errno) + "\n");
}

/// What a child knows of how it was made.
struct Birth {
  pid_t shim = -1;
  std::vector<std::string> groups;  ///< the control groups of the order it is in already
};

/// The group of the order that can be in no tree but that of cgroup v2; "" if none is known to be.
const std::string& unified_group(const Order& order) {
  return order.kill_cgroup.empty() ? order.freeze_cgroup : order.kill_cgroup;
}

/// As fork(2), with the child in a control group from its first instruction. Joining by writing to
/// cgroup.procs makes the kernel wait for all CPUs, 5 to 30 ms; being born there takes 0.1.
/// Negative if there is no such group, or this cannot be done (before Linux 5.7, or by a seccomp
/// filter).
pid_t fork_into(const std::string& group) {
  if (group.empty()) return -1;
  const Fd directory(::open(group.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return -1;
  clone_args arguments{};
  arguments.flags = CLONE_INTO_CGROUP;
  arguments.exit_signal = SIGCHLD;
  arguments.cgroup = static_cast<__u64>(directory.get());
  return static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
}

/// Everything before the change of user opens only what is the daemon's own or the kernel's;
/// everything after it is opened as the user. `record`: where it notes its pid.
LaunchFailure become_job(const Order& order, const Birth& birth, int log_error, int record) {
  // A session of its own: `kill 0` in the job must not reach the shim.
  (void)::setsid();
  if (!take_mark(order.mark)) return failed(Step::TakeMark);
  // Under memory pressure the kernel is to take the job before the daemon and the shim.
  (void)write_path("/proc/self/oom_score_adj", "200");
  if (!open_as(STDIN_FILENO, "/dev/null", O_RDONLY)) return failed(Step::OpenStdin);
  if (log_error != 0) return {.step = Step::OpenLog, .error = log_error};
  for (const std::string& cgroup : order.cgroups) {
    if (std::ranges::find(birth.groups, cgroup) != birth.groups.end()) continue;
    if (!write_path(cgroup + "/cgroup.procs", "0")) return failed(Step::JoinCgroup);
  }
  bind_to_cpus(order);
  if (!leave_session_keyring()) return failed(Step::JoinKeyring);
  if (order.uid && !become_user(*order.uid)) return failed(Step::BecomeUser);
  // After the change of user, which clears it (prctl(2)). The shim may have died before it was set.
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != birth.shim) ::_exit(1);
  // Before it is kept from anything: what is mounted on demand there has to be there by then.
  if (::chdir(order.work_dir.c_str()) != 0) return failed(Step::ChangeDirectory);
  if (order.isolation == attempt::kByLandlock && !keep_from_devices(order.filter)) {
    return failed(Step::KeepFromGpus);
  }
  (void)::umask(order.umask);
  limit_open_files(order.open_files);
  return run_program(order, record);
}

[[noreturn]] void end_unable(const LaunchFailure& failure, int result) {
  const std::string_view bytes(reinterpret_cast<const char*>(&failure), sizeof failure);
  (void)write_whole(result, bytes);  // nobody else to tell
  ::_exit(127);
}

/// The child's life up to execve(2).
[[noreturn]] void child(
    const Order& order, const JobLog& log, const Birth& birth, int result, int record) {
  unblock_signals();
  const int log_error = write_to(log);
  constexpr int kResult = 3;
  constexpr int kRecord = 4;
  const int copy = ::fcntl(record, F_DUPFD_CLOEXEC, kRecord + 1);  // clear of both numbers
  const bool can_note = copy >= 0;
  const int error = errno;
  if (result != kResult) (void)::dup3(result, kResult, O_CLOEXEC);
  if (!can_note) end_unable({.step = Step::Fork, .error = error}, kResult);
  (void)::dup3(copy, kRecord, O_CLOEXEC);
  // All others are close-on-exec; this also closes what a kernel bug or a library left open.
  (void)::close_range(kRecord + 1, ~0U, 0);
  end_unable(become_job(order, birth, log_error, kRecord), kResult);
}

/// A recruit's life.
[[noreturn]] void wait_and_become(Fd orders,
                                  const std::vector<std::string>& groups,
                                  std::size_t born_in,
                                  pid_t shim) {
  // Nothing of the shim's is kept open by one that may wait for hours.
  constexpr int kOrders = 3;
  if (orders.get() != kOrders) {
    (void)::dup3(orders.get(), kOrders, O_CLOEXEC);
    orders = Fd(kOrders);
  }
  (void)::close_range(kOrders + 1, ~0U, 0);
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::vector<bool> is_in(groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    is_in[i] = i < born_in || write_path(groups[i] + "/cgroup.procs", "0");
  }
  auto told = wait_to_be_enlisted(orders);
  if (!told) ::_exit(0);
  discard_signals_to_recruit(shim);
  orders.reset();
  const JobLog log{std::move(told->log), told->log_error};
  // One that got its present name before it could be joined is joined as the others are.
  Birth birth{.shim = shim, .groups = {}};
  for (std::size_t i = 0; i < groups.size() && i < told->joined.size(); ++i) {
    if (is_in[i]) birth.groups.push_back(told->joined[i]);
  }
  child(told->order, log, birth, told->result.get(), told->record.get());
}

}  // namespace

JobLog open_log(const Order& order) {
  // A second attempt finds a file that its user owns: a lease on it would make open(2) wait.
  constexpr int kFlags =
      O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC;
  JobLog log{.file = Fd(::open(order.log_path.c_str(), kFlags, 0600))};
  const auto give_up = [&log](int error) {
    log.error = error;
    log.file.reset();
  };
  struct stat facts{};
  if (!log.file.valid() || ::fstat(log.file.get(), &facts) != 0) {
    give_up(errno);
    return log;
  }
  if (!S_ISREG(facts.st_mode)) {
    give_up(EINVAL);
    return log;
  }
  const auto same_group = static_cast<gid_t>(-1);
  const bool is_ready = ::fcntl(log.file.get(), F_SETFL, O_APPEND) == 0 &&
                        (!order.uid || ::fchown(log.file.get(), *order.uid, same_group) == 0);
  if (!is_ready) give_up(errno);
  return log;
}

Outcome<Recruit> start_recruit(const std::string& unified, const std::vector<std::string>& others) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return errno_trouble("make a socket");
  }
  Fd mine(ends[0]);
  Fd its(ends[1]);
  const pid_t shim = ::getpid();
  std::vector<std::string> groups = others;
  if (!unified.empty()) groups.insert(groups.begin(), unified);
  pid_t pid = fork_into(unified);
  const std::size_t born_in = pid < 0 ? 0 : 1;
  if (pid < 0) pid = ::fork();
  if (pid < 0) return errno_trouble("create the process");
  if (pid == 0) wait_and_become(std::move(its), groups, born_in, shim);
  return Recruit{pid, std::move(mine)};
}

Outcome<Payload> start_payload(const Order& order,
                               JobLog& log,
                               const Fd& record,
                               const std::optional<Recruited>& recruited) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno_trouble("make a pipe");
  Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  if (recruited) {
    Enlistment told{order,
                    recruited->joined,
                    std::move(log.file),
                    log.error,
                    std::move(write_end),
                    Fd(::fcntl(record.get(), F_DUPFD_CLOEXEC, 0))};
    const bool done = enlist(recruited->process, told);
    log.file = std::move(told.log);
    write_end = std::move(told.result);
    if (done) return Payload{recruited->process.pid, std::move(read_end)};
    (void)::kill(recruited->process.pid, SIGKILL);  // our child, not waited for: nobody else's pid
    (void)::waitpid(recruited->process.pid, nullptr, 0);
  }
  Birth birth{.shim = ::getpid(), .groups = {}};
  pid_t pid = fork_into(unified_group(order));
  if (pid >= 0) birth.groups.push_back(unified_group(order));
  if (pid < 0) pid = ::fork();
  if (pid < 0) return errno_trouble("create the process");
  if (pid == 0) child(order, log, birth, write_end.get(), record.get());
  return Payload{pid, std::move(read_end)};
}

std::string failure_text(const Order& order, const LaunchFailure& failure) {
  std::string text(attempt::step_text(failure.step));
  switch (failure.step) {
    case Step::ReachProgram:
      return "its first process ended before it ran the program of the job" +
             (failure.about.front() == '\0' ? "" : " (" + std::string(failure.about.data()) + ")");
    case Step::ChangeDirectory:
      text.append(" ").append(in_quotes(order.work_dir));
      break;
    case Step::OpenLog:
      text.append(" ").append(in_quotes(order.log_path));
      break;
    case Step::BecomeUser:
      text.append(" (uid ").append(std::to_string(order.uid.value_or(0))).append(")");
      break;
    case Step::RunInterpreter:
      text.append(" ").append(failure.about.data());
      break;
    case Step::RunProgram:
      text.append(" ").append(in_quotes(order.argv.front()));
      break;
    default:
      break;
  }
  return text + ": " + error_name(failure.error);
}

void add_to_log(const JobLog& log, const std::string& text) {
  // The record says it too.
  if (log.file.valid()) (void)write_whole(log.file.get(), "gflow: " + text + "\n");
}

}  // namespace gflow::shim
