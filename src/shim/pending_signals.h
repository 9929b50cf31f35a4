// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gflow::shim {

/// Takes away what was sent to this process while it waited for a job with all signals blocked: it
/// was not meant for the job it now gets. That a child has ended (SIGCHLD) stays to be read.
void discard_pending_signals();

}  // namespace gflow::shim
