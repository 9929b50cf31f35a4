// SPDX-License-Identifier: Apache-2.0
#include "shim/identity.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <pwd.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include "shim/io.h"

namespace gflow::shim {
namespace {

/// What root's class and priority would let a job do to all others. Lower ones are kept: who runs
/// the daemon at nice 10 wants its jobs there.
void take_ordinary_priority() {
  const int policy = ::sched_getscheduler(0);
  const sched_param none{};
  if (policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE) {
    (void)::sched_setscheduler(0, SCHED_OTHER, &none);  // root may
  }
  errno = 0;
  if (::getpriority(PRIO_PROCESS, 0) < 0 && errno == 0) (void)::setpriority(PRIO_PROCESS, 0, 0);
}

/// setresuid(2) clears most of them, but not what is inheritable, and nothing at all under the
/// securebits of a container that keeps them.
bool drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
  (void)::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);  // nothing inheritable follows
  return ::syscall(SYS_capset, &header, none.data()) == 0;
}

bool has_become(uid_t uid) {
  uid_t real = 0;
  uid_t effective = 0;
  uid_t saved = 0;
  if (::getresuid(&real, &effective, &saved) != 0) return false;
  errno = EPERM;
  if (real != uid || effective != uid || saved != uid) return false;
  const bool came_back = uid != 0 && ::setuid(0) == 0;
  errno = EPERM;
  return !came_back;
}

}  // namespace

bool leave_session_keyring() {
  if (::geteuid() != 0) return true;
  if (::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr) >= 0) return true;
  return errno == ENOSYS || errno == EPERM || errno == EACCES || errno == EOPNOTSUPP;
}

bool become_user(uid_t uid) {
  std::vector<char> buffer(65536);
  passwd entry{};
  passwd* found = nullptr;
  errno = ::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
  if (errno != 0) return false;
  errno = ENOENT;
  if (found == nullptr) return false;
  take_ordinary_priority();
  (void)write_path("/proc/self/loginuid", std::to_string(uid));  // not every kernel has it
  if (::initgroups(found->pw_name, found->pw_gid) != 0) return false;
  if (::setresgid(found->pw_gid, found->pw_gid, found->pw_gid) != 0) return false;
  if (::setresuid(uid, uid, uid) != 0) return false;
  if (uid != 0 && !drop_capabilities()) return false;
  (void)::syscall(SYS_keyctl, KEYCTL_LINK, KEY_SPEC_USER_KEYRING, KEY_SPEC_SESSION_KEYRING);
  return has_become(uid);
}

}  // namespace gflow::shim
