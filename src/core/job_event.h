// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "core/job_range.h"

namespace gflow {

/// What happened to a job. Stored by number: never change one.
enum class Happening : std::uint8_t {
  Nothing = 0,  ///< that anybody is told of
  Submitted = 1,
  Held = 2,
  Released = 3,
  Changed = 4,   ///< what was asked for
  Starting = 5,  ///< it was given what it asked for, and is launched
  Started = 6,   ///< it runs
  Stopping = 7,  ///< it was told to end
  Suspended = 8,
  Resumed = 9,
  Requeued = 10,  ///< it waits again after an attempt
  Ended = 11,
  Lent = 12,    ///< its GPU is another's while it leaves it idle
  Moving = 13,  ///< from one GPU to another, and has both
  Moved = 14,   ///< it is on the new one, or could not be moved
};
struct HappeningName {
  Happening what;
  std::string_view type;
};
constexpr std::array<HappeningName, 14> kHappenings = {{
    {Happening::Submitted, "job.submitted"},
    {Happening::Held, "job.held"},
    {Happening::Released, "job.released"},
    {Happening::Changed, "job.changed"},
    {Happening::Starting, "job.starting"},
    {Happening::Started, "job.started"},
    {Happening::Stopping, "job.stopping"},
    {Happening::Suspended, "job.suspended"},
    {Happening::Resumed, "job.resumed"},
    {Happening::Requeued, "job.requeued"},
    {Happening::Ended, "job.ended"},
    {Happening::Lent, "job.lent"},
    {Happening::Moving, "job.moving"},
    {Happening::Moved, "job.moved"},
}};
[[nodiscard]] std::string_view event_type(Happening what);  ///< "job.ended"

/// What is told of it, and kept: nothing but what everybody may know of a job.
struct JobEvent {
  Happening what = Happening::Nothing;
  JobId job;
  User user;
  std::string name{};
  bool allocation = false;
  Status status = Status::Queued;  ///< since then
  int attempt = 0;                 ///< it happened to; 0: to none
  std::string node{};              ///< of the attempt, as `gpus`
  std::vector<int> gpus{};
  EndReason reason = EndReason::Exited;  ///< of Ended, as all below
  int exit_code = 0;
  int signal = 0;
  /// It happened to so many jobs, of which `job` is the first: an event for each, one behind the
  /// other.
  std::uint64_t count = 1;
  Naming naming{};  ///< of these

  /// What happened to the i-th of them.
  [[nodiscard]] JobEvent at(std::uint64_t i) const;
  /// To `most` of them, from the i-th on.
  [[nodiscard]] JobEvent part(std::uint64_t i, std::uint64_t most) const;

  friend bool operator==(const JobEvent&, const JobEvent&) = default;
};
[[nodiscard]] JobEvent event_of(const Job& job, Happening what);
[[nodiscard]] JobEvent event_of(const JobRange& range, Happening what);

/// What happened at once: the events of one commit, numbered from `first` on.
struct JobEvents {
  std::uint64_t first = 0;
  WallTime at{};
  std::vector<JobEvent> events{};

  [[nodiscard]] std::size_t count() const;  ///< of events, each job's own

  friend bool operator==(const JobEvents&, const JobEvents&) = default;
};

/// How much of what happened is kept: for clients that come back, not for the record.
constexpr std::size_t kMaxEventsKept = 65'536;
constexpr std::chrono::hours kEventsKeptFor{24};
/// Entries in one row of the store, and events in one piece of an answer.
constexpr std::size_t kMaxEventsTogether = 500;

}  // namespace gflow
