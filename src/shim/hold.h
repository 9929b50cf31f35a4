// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gflow::shim {

/// The whole life of the one process of an allocation: waits until a process has ended, known by
/// its pid and its start time (clock ticks since boot); for ever without arguments, or for a pid
/// of 0. What follows those two is another process, with which the allocation left the queue: that
/// is over once this runs. SIGTERM ends it. The exit status of the program: 0 once that process is
/// gone, 2 for other arguments.
[[nodiscard]] int hold_for(int count, char** arguments);

}  // namespace gflow::shim
