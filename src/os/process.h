// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/proc_text.h"
#include "base/result.h"
#include "os/fd.h"

namespace gflow::os {

/// What /proc/PID/stat says. Empty if there is no such process; an error says nothing of the
/// process.
[[nodiscard]] Result<std::optional<ProcessFacts>> find_process(int pid);
/// The same for one that is only of interest if it can be read.
[[nodiscard]] std::optional<ProcessFacts> process_facts(int pid);

/// A pidfd of the process with this pid that was started then (ProcessFacts::start_time): readable
/// once it has ended. None if it is gone, or if no descriptor can be had.
[[nodiscard]] Fd hold_process(int pid, std::uint64_t start_time);
/// Whether it is one, and not another thread of one, which has a number, too.
[[nodiscard]] bool is_process(int pid);
/// Whose process it is; empty if there is none. Root's, too, where its owner may not look into it.
[[nodiscard]] std::optional<std::uint32_t> process_owner(int pid);

}  // namespace gflow::os
