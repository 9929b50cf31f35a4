// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/expected_start.h"
#include "api/types.h"

/// What 'gqueue --start --json' prints, and no route answers with: docs/format/commands.md.
namespace gflow::api {

/// A job that waits, and when it should start, if that is known.
struct WaitingJob {
  JobView job;
  std::optional<ExpectedStart> expected_start;
};
/// As `expected_start` has it in `by`: "time_limits".
[[nodiscard]] std::string_view start_by_name(StartBy by);
/// The fields of the job, and `expected_start` beside them.
[[nodiscard]] std::string write(const WaitingJob& waiting);
[[nodiscard]] std::string write_waiting(const std::vector<WaitingJob>& waiting);

}  // namespace gflow::api
