// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "command/context.h"

namespace gflow::cli {

/// What a job that ended without an exit code of its own gives: never ran, time limit, lost.
constexpr int kNoExitCode = 125;

/// Waits until all have ended; the jobs as they then are. Outlives a restart of the daemon.
/// Errors: NotFound for a job that is not there, Timeout.
[[nodiscard]] Result<std::vector<api::JobView>> wait_for(
    Context& context,
    const std::vector<JobId>& jobs,
    std::optional<std::chrono::milliseconds> most);

/// The job's exit code, 128 + N if signal N killed it (9 at its memory limit), else kNoExitCode.
[[nodiscard]] int exit_code_of(const api::JobView& job);
/// The highest of them.
[[nodiscard]] int exit_code_of(const std::vector<api::JobView>& jobs);

/// Where to see why: the log of the first that failed. "" if none did, or none was started.
[[nodiscard]] std::string failure_advice(const std::vector<api::JobView>& ended);

}  // namespace gflow::cli
