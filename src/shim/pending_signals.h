// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

/// Both take away what was sent to a process while it waited for a job with all signals blocked: it
/// was not meant for the job it now gets. That a child has ended (SIGCHLD) stays to be read, and so
/// does what was sent since the job was handed over.
namespace gflow::shim {

/// To a supervisor: what the daemon says of the job (attempt/control.h) stays.
void discard_signals_to_supervisor();

/// To its recruit: what the supervisor has sent stays.
void discard_signals_to_recruit(pid_t supervisor);

}  // namespace gflow::shim
