// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "os/fd.h"

namespace gflow::os {

/// Gives the other end of a unix socket an open file of ours, to have as its own.
/// Errors: what the system said; Unreachable where the other end has hung up.
[[nodiscard]] Result<void> send_descriptor(int channel, int descriptor);
/// The next one that was given; waits for it unless the channel does not. Nothing comes, or
/// something else: one that is not valid. Errors: Unreachable where the other end has hung up.
[[nodiscard]] Result<Fd> receive_descriptor(int channel);

}  // namespace gflow::os
