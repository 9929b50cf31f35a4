// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attempt/exit_record.h"
#include "base/result.h"
#include "core/job.h"

namespace gflow::runner {

/// What an exit record says, in the words of the engine.
[[nodiscard]] Outcome outcome_of(const attempt::ExitRecord& record);
[[nodiscard]] attempt::Ending ending_for(EndReason reason);
[[nodiscard]] EndReason end_reason_of(attempt::Ending ending);
/// An end there is no record of.
[[nodiscard]] Outcome outcome_without_record(EndReason reason, std::string message);
/// A launch that failed before a supervisor took it: LaunchFailed if that is the job's own fault,
/// else NotStarted. `step` is what was being done.
[[nodiscard]] Outcome not_launched(FailureKind kind, std::string step, const Error& error);

}  // namespace gflow::runner
