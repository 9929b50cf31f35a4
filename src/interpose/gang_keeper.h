// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Keeps the gates of a job with parts of several devices, which has the turn on all of them at
/// once: one thread in each of its processes (docs/design/0033).
namespace gflow::interpose {

/// Whether the job is one, and its turns can be had.
[[nodiscard]] bool has_gang();
/// Makes the thread, once. False if there is none to be had.
[[nodiscard]] bool start_gang_keeper();
/// A launch waits. Nothing where there is no such thread.
void wake_gang();
/// In the child of a fork.
void forget_gang();

}  // namespace gflow::interpose
