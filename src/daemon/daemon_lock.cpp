// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon_lock.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.h"
#include "os/file.h"
#include "os/user.h"

namespace gflow::daemon {
namespace {

/// Whether the lock names a process that is no more, or is dead and not waited for yet.
bool holder_is_gone(const std::string& path) {
  const auto text = os::read_file(path);
  const auto pid = text ? parse_number(trim(*text)) : std::nullopt;
  if (!pid || *pid == 0) return false;
  const os::Fd holder(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(*pid), 0)));
  if (!holder.valid()) return errno == ESRCH;
  pollfd ended{holder.get(), POLLIN, 0};
  return ::poll(&ended, 1, 0) > 0;
}

}  // namespace

Result<os::Fd> take_daemon_lock(const std::string& path) {
  auto lock = os::lock_file(path);
  // A daemon that was killed while it started a program left the lock to that for a moment: a child
  // between clone(2) and execve(2) has all its descriptors.
  constexpr int kPatienceMs = 10'000;
  constexpr int kLookMs = 5;
  for (int waited = 0; !lock && lock.error().code == Code::WrongState && waited < kPatienceMs &&
                       holder_is_gone(path);
       waited += kLookMs) {
    (void)::poll(nullptr, 0, kLookMs);
    lock = os::lock_file(path);
  }
  if (!lock) {
    if (lock.error().code != Code::WrongState) return lock;
    const auto holder = os::read_file(path);
    return fail(Code::WrongState,
                fmt::format("gflowd runs already (pid {}): 'gflowd status' shows it, "
                            "'gflowd restart' replaces it",
                            holder ? printable(trim(*holder)) : std::string("unknown")));
  }
  // Over what is there and cut then: a block given back on a full disk is somebody else's at once.
  const std::string pid = fmt::format("{}\n", os::process_id());
  GF_CHECK(os::write_all(lock->get(), pid));
  if (::ftruncate(lock->get(), static_cast<off_t>(pid.size())) != 0) {
    return os::errno_error("write", path);
  }
  return lock;
}

}  // namespace gflow::daemon
