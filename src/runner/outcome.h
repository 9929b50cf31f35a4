// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attempt/exit_record.h"
#include "core/job.h"

namespace gflow::runner {

/// What an exit record says, in the words of the engine.
[[nodiscard]] Outcome outcome_of(const attempt::ExitRecord& record);
[[nodiscard]] attempt::Ending ending_for(EndReason reason);
/// An end there is no record of.
[[nodiscard]] Outcome outcome_without_record(EndReason reason, std::string message);

}  // namespace gflow::runner
