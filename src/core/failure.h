// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gflow {

/// Whose fault it is that an attempt did not start. Only the job's own ends a job.
enum class FailureKind {
  Job,      ///< another try would fail the same way: no such program, no such directory
  Node,     ///< any job would fail there now: disk full, no supervisor, no descriptors
  Passing,  ///< gone before long: a file server that does not answer, a process that was killed
  Unknown,  ///< nothing ran, and nobody said why
};

/// What failed when an attempt could not be started. Decided where the failing call is made.
struct Failure {
  FailureKind kind = FailureKind::Job;
  std::string step{};  ///< "create the control group"; "" if not known
  int error = 0;       ///< errno; 0 if there is none

  friend bool operator==(const Failure&, const Failure&) = default;
};

/// Whether any job would have met it just then: the machine ran out of something, or somebody
/// killed or stopped (EINTR) what was to run the job. However often that comes, it says nothing of
/// the job. A quota that is used up (EDQUOT) is its user's.
[[nodiscard]] bool is_of_any_job(const Failure& failure);

}  // namespace gflow
