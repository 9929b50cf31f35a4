// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "base/result.h"
#include "os/fd.h"

namespace gflow::os {

/// A stream socket listening at `path`, non-blocking, closed on exec. A socket file left there is
/// replaced, and who finds one there can connect. Its permissions are never wider than `mode`, not
/// even while it is made. Errors: Usage for a path over 107 bytes, WrongState if something else
/// than a socket lies there.
[[nodiscard]] Result<Fd> listen_unix(const std::string& path, mode_t mode);
/// What listen_unix() would say of the place. Errors: Usage, WrongState.
[[nodiscard]] Result<void> check_socket_place(const std::string& path);
/// Waits for `most`, for ever if that is 0, for one who listens there and lets nobody in yet.
/// Errors: Usage for a path over 107 bytes, Permission, Unreachable if nobody listens there,
/// Timeout.
[[nodiscard]] Result<Fd> connect_unix(const std::string& path,
                                      std::chrono::seconds most = std::chrono::seconds(0));
/// Whether a path is short enough for a socket: 1 to 107 bytes.
[[nodiscard]] bool is_socket_path(const std::string& path);

}  // namespace gflow::os
