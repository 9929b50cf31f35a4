// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"
#include "os/fd.h"

namespace gflow::os {

/// A stream socket listening at `path`, non-blocking, closed on exec. A socket file left there is
/// replaced. Its permissions are never wider than `mode`, not even while it is made.
/// Errors: Usage for a path over 107 bytes, WrongState if something else than a socket lies there.
[[nodiscard]] Result<Fd> listen_unix(const std::string& path, mode_t mode);
/// Errors: Usage for a path over 107 bytes, Permission, Unreachable if nobody listens there.
[[nodiscard]] Result<Fd> connect_unix(const std::string& path);

}  // namespace gflow::os
