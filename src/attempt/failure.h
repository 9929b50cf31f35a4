// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attempt/exit_record.h"

namespace gflow::attempt {

/// Whose fault it is that the program of a job was not started. The same as gflow::FailureKind.
enum class Fault { Job, Node, Passing };

/// By the step that failed and its errno. What a user can bring about with files of its own is the
/// job's fault or passes: nobody may make a node look broken to others.
[[nodiscard]] Fault fault_of(Step step, int error);

}  // namespace gflow::attempt
