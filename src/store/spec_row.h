// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "core/job.h"
#include "store/query.h"

/// What a job asked for, as columns of the table jobs.
namespace gflow::store {

// In the order bind_spec() and read_spec() go through them.
constexpr auto kSpecColumns = std::to_array<std::string_view>({
    "name",
    "uid",
    "user",
    "project",
    "gpus",
    "cpus",
    "memory_bytes",
    "priority",
    "grace_seconds",
    "dependency_mode",
    "auto_cancel",
    "hold",
    "requeue",
    "max_retries",
    "\"group\"",
    "max_concurrent",
    "command",
    "work_dir",
    "time_limit_seconds",
    "begin_ms",
    "share_parts",
    "gpu_memory_bytes",
    "gpu_mode",
    "vendor",
    "models",
    "see_all",
    "nodes",
    "selector",
    "preemption",
    "preempt_signal",
});

void bind_spec(Query& query, const JobSpec& spec);
/// All but the dependencies' ids. Throws SQLite::Exception for what cannot be.
[[nodiscard]] JobSpec read_spec(Query& query);

}  // namespace gflow::store
