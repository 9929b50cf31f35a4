// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

namespace gflow::shim {

/// Gives the calling process a session keyring of its own if it is root's: a job must not reach the
/// keys of whoever started the daemon. While it still is root, so that the keyring does not count
/// against what its user may have. Nothing happens where the system has no keyrings or refuses
/// them, to the job as well. False, with errno, if the process keeps the keyring it had.
[[nodiscard]] bool leave_session_keyring();

/// Becomes the user, with the groups of its account, and gives up for good whatever only root may
/// have or hand on: all user and group ids, capabilities of every set, a privileged scheduling
/// class or priority, the login id of audit(7). False, with errno, if any of it could not be had.
/// The user's own keyring is linked to the session's, as a login does.
[[nodiscard]] bool become_user(uid_t uid);

}  // namespace gflow::shim
