// SPDX-License-Identifier: Apache-2.0
#include "core/job_event.h"

#include <algorithm>

namespace gflow {
namespace {

/// What it is from then on: the job itself may be further by now.
Status status_after(const Job& job, Happening what) {
  switch (what) {
    case Happening::Submitted:
      return job.spec.hold ? Status::Hold : Status::Queued;
    case Happening::Held:
      return Status::Hold;
    case Happening::Released:
    case Happening::Requeued:
      return Status::Queued;
    case Happening::Starting:
      return Status::Starting;
    case Happening::Started:
    case Happening::Resumed:
    case Happening::Lent:
    case Happening::Moving:
    case Happening::Moved:
      return Status::Running;
    case Happening::Stopping:
      return Status::Completing;
    case Happening::Suspended:
      return Status::Suspended;
    case Happening::Nothing:
    case Happening::Changed:
    case Happening::Ended:
      break;
  }
  return status_of(job);
}

bool tells_attempt(Happening what) {
  return what == Happening::Starting || what == Happening::Started || what == Happening::Stopping ||
         what == Happening::Suspended || what == Happening::Resumed || what == Happening::Lent ||
         what == Happening::Moving || what == Happening::Moved || what == Happening::Ended;
}

}  // namespace

std::string_view event_type(Happening what) {
  const auto found = std::ranges::find(kHappenings, what, &HappeningName::what);
  return found == kHappenings.end() ? "" : found->type;
}

JobEvent event_of(const Job& job, Happening what) {
  JobEvent event;
  event.what = what;
  event.job = job.id;
  event.user = job.spec.user;
  event.name = job.spec.name;
  event.allocation = job.spec.allocation;
  event.status = status_after(job, what);
  const Attempt* attempt = tells_attempt(what) ? attempt_of(job) : nullptr;
  if (attempt != nullptr) {
    event.attempt = attempt->number;
    event.node = attempt->allocation.node;
    event.gpus = attempt->allocation.gpus;
  }
  const auto* ended = what == Happening::Ended ? std::get_if<Ended>(&job.state) : nullptr;
  if (ended != nullptr) {
    event.reason = ended->outcome.reason;
    event.exit_code = ended->outcome.exit_code;
    event.signal = ended->outcome.signal;
  }
  return event;
}

JobEvent event_of(const JobRange& range, Happening what) {
  JobEvent event = event_of(range.first, what);
  event.count = range.count;
  event.naming = range.naming;
  return event;
}

JobEvent JobEvent::part(std::uint64_t i, std::uint64_t most) const {
  JobEvent part = *this;
  part.job = JobId(job.value + i);
  part.name = name_after(name, job, naming, i);
  part.count = std::min(most, count - i);
  return part;
}

JobEvent JobEvent::at(std::uint64_t i) const {
  JobEvent one = part(i, 1);
  one.naming = {};
  return one;
}

std::size_t JobEvents::count() const {
  std::size_t all = 0;
  for (const JobEvent& event : events) all += event.count;
  return all;
}

}  // namespace gflow
