// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attempt/order.h"
#include "attempt/proc_text.h"
#include "os/fd.h"

/// Processes of this machine, read from /proc.
namespace gflow::runner {

/// Variable every process of an attempt inherits, with the launch id as its value.
constexpr const char* kMarker = "GFLOW_ATTEMPT_ID";

[[nodiscard]] std::optional<attempt::ProcessFacts> process_facts(int pid);
/// A pidfd; invalid if there is no such process.
[[nodiscard]] os::Fd open_process(int pid);
/// Whether the process of a pidfd has ended.
[[nodiscard]] bool has_ended(const os::Fd& process);

/// What is left of an attempt without a shim: members of its control groups, and whatever carries
/// its marker in its environment. Each is held by a pidfd, and was seen to belong to the attempt
/// after that was opened.
[[nodiscard]] std::vector<os::Fd> survivors_of(const attempt::Order& order);

}  // namespace gflow::runner
