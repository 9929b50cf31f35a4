// SPDX-License-Identifier: Apache-2.0
#include "runner/outcome.h"

#include "attempt/failure.h"
#include "base/text.h"

namespace gflow::runner {
namespace {

using attempt::Ending;

constexpr bool same(Ending ending, EndReason reason) {
  return static_cast<std::uint32_t>(ending) == static_cast<std::uint32_t>(reason);
}
// Both are persisted; the shim may not include core, so the two lists are compared here.
static_assert(same(Ending::Exited, EndReason::Exited));
static_assert(same(Ending::Signalled, EndReason::Signalled));
static_assert(same(Ending::TimeLimit, EndReason::TimeLimit));
static_assert(same(Ending::Cancelled, EndReason::Cancelled));
static_assert(same(Ending::OutOfMemory, EndReason::OutOfMemory));
static_assert(same(Ending::LaunchFailed, EndReason::LaunchFailed));
static_assert(same(Ending::SupervisorDied, EndReason::SupervisorDied));
static_assert(same(Ending::Rebooted, EndReason::Rebooted));
static_assert(same(Ending::DependencyFailed, EndReason::DependencyFailed));
static_assert(same(Ending::Preempted, EndReason::Preempted));

FailureKind kind_of(attempt::Fault fault) {
  switch (fault) {
    case attempt::Fault::Job:
      return FailureKind::Job;
    case attempt::Fault::Node:
      return FailureKind::Node;
    case attempt::Fault::Passing:
      break;
  }
  return FailureKind::Passing;
}

EndReason reason_for(FailureKind kind) {
  return kind == FailureKind::Job ? EndReason::LaunchFailed : EndReason::NotStarted;
}

}  // namespace

Outcome outcome_of(const attempt::ExitRecord& record) {
  Outcome outcome;
  outcome.reason = end_reason_of(record.reason);
  outcome.exit_code = record.exit_code;
  outcome.signal = record.signal;
  outcome.message = printable(record.message);
  outcome.run_time = record.run_time;
  outcome.cpu_time = record.cpu_time;
  outcome.peak_memory = Memory{record.peak_memory_bytes};
  if (record.reason == Ending::LaunchFailed) {
    outcome.failure = {kind_of(attempt::fault_of(record.step, record.error)),
                       std::string(attempt::step_text(record.step)),
                       record.error};
    outcome.reason = reason_for(outcome.failure.kind);
  }
  return outcome;
}

Ending ending_for(EndReason reason) { return static_cast<Ending>(reason); }
EndReason end_reason_of(Ending ending) { return static_cast<EndReason>(ending); }

Outcome outcome_without_record(EndReason reason, std::string message) {
  Outcome outcome;
  outcome.reason = reason;
  outcome.message = std::move(message);
  return outcome;
}

Outcome not_launched(FailureKind kind, std::string step, const Error& error) {
  Outcome outcome = outcome_without_record(reason_for(kind), error.message);
  outcome.failure = {kind, std::move(step), error.number};
  return outcome;
}

}  // namespace gflow::runner
