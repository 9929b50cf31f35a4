// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace gflow::interpose {

/// Tells that the GPU of the job is wanted back: makes Account::lent, if that is share::kLent,
/// share::kWanted, and if it was this thread that did, writes a byte into the named pipe. Never
/// waits, and what goes wrong with the pipe is ignored: gflowd reads the word when it comes back.
/// Any thread, also in a handler of a signal: system calls only. It may change errno.
void tell_wanted(std::atomic<std::uint32_t>& lent, const char* pipe);

}  // namespace gflow::interpose
