// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon_lock.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/time.h"
#include "base/translate.h"
#include "os/file.h"
#include "os/lock_holder.h"

namespace gflow::daemon {
namespace {

/// Whether who has the lock is about to change: it names a process that is no more or will soon be
/// none, or nobody yet, as one that took it this moment.
bool is_changing_hands(const std::string& path) {
  const auto holder = os::read_lock(path);
  if (!holder) return true;
  const os::Fd process(static_cast<int>(::syscall(SYS_pidfd_open, holder->pid, 0)));
  if (!process.valid()) return errno == ESRCH;
  pollfd ended{process.get(), POLLIN, 0};
  return ::poll(&ended, 1, 0) > 0 || os::is_dying(holder->pid);
}

}  // namespace

Result<os::Fd> take_daemon_lock(const std::string& path, const os::LockHolder& self) {
  auto lock = os::lock_file(path);
  // A daemon that was killed keeps the lock until the kernel has taken back its memory. If it was
  // starting a program it left the lock to that for a moment: a child between clone(2) and
  // execve(2) has all its descriptors.
  constexpr int kPatienceMs = 60'000;
  constexpr int kLookMs = 5;
  for (int waited = 0; !lock && lock.error().code == Code::WrongState && waited < kPatienceMs &&
                       is_changing_hands(path);
       waited += kLookMs) {
    (void)::poll(nullptr, 0, kLookMs);
    lock = os::lock_file(path);
  }
  if (!lock) {
    if (lock.error().code != Code::WrongState) return lock;
    const auto holder = os::read_lock(path);
    return fail(Code::WrongState,
                tr_format("gflowd is already running (pid {}): 'gflowd status' shows it, 'gflowd "
                          "restart' replaces it",
                          holder ? std::to_string(holder->pid) : std::string("unknown")));
  }
  // Over what is there and cut then: a block given back on a full disk is somebody else's at once.
  const std::string holder = os::lock_text(self);
  if (const auto written = os::write_all(lock->get(), holder); !written) {
    return with_context(written.error(), path);
  }
  if (::ftruncate(lock->get(), static_cast<off_t>(holder.size())) != 0) {
    return os::errno_error("write", path);
  }
  return lock;
}

Result<void> tell_to_end(const os::LockHolder& holder) {
  GF_CHECK(check_not_stopped(holder));
  const os::Fd process(static_cast<int>(::syscall(SYS_pidfd_open, holder.pid, 0)));
  if (!process.valid() && errno == ESRCH) return {};
  if (!process.valid()) return os::errno_error("watch gflowd");
  if (::syscall(SYS_pidfd_send_signal, process.get(), SIGTERM, nullptr, 0) != 0 && errno != ESRCH) {
    return os::errno_error(tr_format("stop gflowd (pid {})", holder.pid));
  }
  return {};
}

Result<void> end_holder(const os::LockHolder& holder) {
  constexpr std::chrono::seconds kMost{30};
  GF_CHECK(tell_to_end(holder));
  return wait_until_gone(holder.pid, kMost);
}

Result<void> wait_for_dying(const std::string& path, const std::function<void(int)>& say) {
  constexpr std::chrono::seconds kSilent{2};
  constexpr std::chrono::minutes kMost{5};
  const auto holder = os::read_lock(path);
  if (!holder || !os::is_dying(holder->pid) || wait_until_gone(holder->pid, kSilent)) return {};
  if (!os::is_dying(holder->pid)) return {};
  say(holder->pid);
  return wait_until_gone(holder->pid, kMost);
}

Result<void> check_not_stopped(const os::LockHolder& holder) {
  const char state = os::process_state(holder.pid);
  if (state != 'T') return {};
  return fail(Code::Timeout,
              tr_format("{}; 'kill -KILL {}' ends it, and jobs keep running either way",
                        os::silence_text(holder.pid),
                        holder.pid));
}

Result<void> wait_until_gone(int pid, std::chrono::seconds most) {
  const os::Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process.valid()) {
    if (errno == ESRCH) return {};
    return os::errno_error("watch gflowd");
  }
  pollfd wait{process.get(), POLLIN, 0};
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(most);
  if (::poll(&wait, 1, static_cast<int>(limit.count())) > 0) return {};
  return fail(Code::Timeout,
              tr_format("gflowd (pid {}) has not stopped after {}", pid, duration_text(most)));
}

}  // namespace gflow::daemon
