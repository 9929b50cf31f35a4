// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gflow {

/// The state of a job as users see it and filter by it. Persisted: never renumber.
enum class Status {
  Queued = 1,
  Hold = 2,
  Starting = 3,
  Running = 4,
  Completing = 5,
  Finished = 6,
  Failed = 7,
  Cancelled = 8,
  Timeout = 9,
  Lost = 10,
  Suspended = 11,
};

/// The part of its life a job is in.
enum class Phase {
  Pending,  ///< has not started, or is queued again
  Active,   ///< holds what was allocated to it
  Ended,    ///< for good
};

/// Whether time counts as run time of the job.
enum class RunClock { Stands, Runs };

/// How a status is to be taken at a glance.
enum class Tone { Plain, Good, Attention, Bad, Past };

struct StatusInfo {
  Status status = Status::Queued;
  std::string_view name;
  std::string_view code;  ///< what gqueue shows under ST
  Phase phase = Phase::Pending;
  RunClock clock = RunClock::Stands;
  Tone tone = Tone::Plain;
  std::string_view legend;  ///< one clause for manuals
};

/// Every status there is, in the order of a job's life. Nothing else lists them: what holds for
/// some of them is a column here, or a StatusSet made from one.
inline constexpr std::array kStatuses = {
    StatusInfo{Status::Queued,
               "Queued",
               "PD",
               Phase::Pending,
               RunClock::Stands,
               Tone::Plain,
               "waits for its turn and for resources"},
    StatusInfo{Status::Hold,
               "Hold",
               "H",
               Phase::Pending,
               RunClock::Stands,
               Tone::Attention,
               "on hold until it is released"},
    StatusInfo{Status::Starting,
               "Starting",
               "CF",
               Phase::Active,
               RunClock::Runs,
               Tone::Good,
               "has its resources, its first process is being started"},
    StatusInfo{Status::Running, "Running", "R", Phase::Active, RunClock::Runs, Tone::Good, "runs"},
    StatusInfo{Status::Suspended,
               "Suspended",
               "S",
               Phase::Active,
               RunClock::Stands,
               Tone::Attention,
               "suspended, by hand or for a job ahead of it; keeps its memory"},
    StatusInfo{Status::Completing,
               "Completing",
               "CG",
               Phase::Active,
               RunClock::Runs,
               Tone::Attention,
               "told to stop, not all of its processes have ended yet"},
    StatusInfo{Status::Finished,
               "Finished",
               "CD",
               Phase::Ended,
               RunClock::Stands,
               Tone::Past,
               "ended with exit code 0"},
    StatusInfo{Status::Failed,
               "Failed",
               "F",
               Phase::Ended,
               RunClock::Stands,
               Tone::Bad,
               "ended with another exit code, by a signal, or could not be started"},
    StatusInfo{Status::Cancelled,
               "Cancelled",
               "CA",
               Phase::Ended,
               RunClock::Stands,
               Tone::Past,
               "cancelled on request, or because a job it depends on did not finish"},
    StatusInfo{Status::Timeout,
               "Timeout",
               "TO",
               Phase::Ended,
               RunClock::Stands,
               Tone::Bad,
               "reached its time limit"},
    StatusInfo{Status::Lost,
               "Lost",
               "LO",
               Phase::Ended,
               RunClock::Stands,
               Tone::Bad,
               "the machine or its supervisor went away under it"},
};

/// Numbers of statuses are below this: the size of an array indexed by them.
inline constexpr std::size_t kStatusSlots = kStatuses.size() + 1;

[[nodiscard]] constexpr const StatusInfo& status_info(Status status) {
  for (const StatusInfo& info : kStatuses) {
    if (info.status == status) return info;
  }
  return kStatuses.front();  // not reached: the table has every status, status_test.cpp holds it to
}
[[nodiscard]] constexpr bool is_pending(Status status) {
  return status_info(status).phase == Phase::Pending;
}
[[nodiscard]] constexpr bool is_active(Status status) {
  return status_info(status).phase == Phase::Active;
}
[[nodiscard]] constexpr bool is_ended(Status status) {
  return status_info(status).phase == Phase::Ended;
}
[[nodiscard]] constexpr bool counts_run_time(Status status) {
  return status_info(status).clock == RunClock::Runs;
}
[[nodiscard]] constexpr std::string_view status_name(Status status) {  ///< "Queued"
  return status_info(status).name;
}
[[nodiscard]] constexpr std::string_view status_code(Status status) {  ///< "PD"
  return status_info(status).code;
}

/// Some of the statuses.
class StatusSet {
 public:
  constexpr StatusSet() = default;
  constexpr StatusSet(std::initializer_list<Status> statuses) {
    for (const Status status : statuses) insert(status);
  }
  /// All of which `is` says so.
  [[nodiscard]] static constexpr StatusSet where(bool (*is)(Status)) {
    StatusSet all;
    for (const StatusInfo& info : kStatuses) {
      if (is(info.status)) all.insert(info.status);
    }
    return all;
  }

  constexpr void insert(Status status) { bits_ |= bit(status); }
  constexpr StatusSet& operator|=(StatusSet other) {
    bits_ |= other.bits_;
    return *this;
  }
  [[nodiscard]] constexpr bool contains(Status status) const { return (bits_ & bit(status)) != 0; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  /// In the order of the table.
  [[nodiscard]] std::vector<Status> list() const;

  friend constexpr bool operator==(StatusSet, StatusSet) = default;
  friend constexpr StatusSet operator|(StatusSet a, StatusSet b) { return a |= b; }

 private:
  static constexpr std::uint32_t bit(Status status) {
    return std::uint32_t{1} << static_cast<unsigned>(status);
  }
  std::uint32_t bits_ = 0;
};

inline constexpr StatusSet kPending = StatusSet::where(is_pending);
inline constexpr StatusSet kActive = StatusSet::where(is_active);
inline constexpr StatusSet kEnded = StatusSet::where(is_ended);
/// What can still be cancelled, and what is shown where nothing was said.
inline constexpr StatusSet kNotEnded = kPending | kActive;

/// Reads a name or a code of either case. Errors: Code::Usage with the names there are.
[[nodiscard]] Result<Status> parse_status(std::string_view text);
/// "PD H CF ...", all codes.
[[nodiscard]] std::string status_codes();

}  // namespace gflow
