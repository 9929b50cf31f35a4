// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/memory.h"
#include "base/result.h"
#include "base/share.h"
#include "base/time.h"
#include "core/failure.h"
#include "core/gpu_isolation.h"
#include "core/job_id.h"
#include "core/label.h"
#include "core/status.h"

namespace gflow {

/// Who a job belongs to: the account that submitted it, however that was known (core/principal.h).
struct User {
  std::uint32_t uid = 0;
  std::string name;

  friend bool operator==(const User&, const User&) = default;
};

/// How a job uses its devices. Modes do not mix on one device unless Policy::sharing says so.
/// Persisted: never renumber.
enum class GpuMode {
  Whole = 1,      ///< nobody else is on the device
  Fraction = 2,   ///< a share of its compute and memory, beside others
  TimeSlice = 3,  ///< the whole device for a slice of time; memory is held all the time
};
/// "time_slice".
[[nodiscard]] constexpr std::string_view gpu_mode_name(GpuMode mode) {
  switch (mode) {
    case GpuMode::Whole:
      return "whole";
    case GpuMode::Fraction:
      return "fraction";
    case GpuMode::TimeSlice:
      return "time_slice";
  }
  return "unknown";
}

/// What one job holds while it runs, on each of its nodes.
struct Request {
  int gpus = 0;                   ///< devices
  Share share = Share::whole();   ///< of each; below the whole only in mode Fraction
  Share share_limit{};            ///< the most of each, where others leave it; 0: its share
  Memory gpu_memory{};            ///< of each, guaranteed to be free at the start; 0: not declared
  GpuMode mode = GpuMode::Whole;  ///< means nothing without devices
  std::string vendor;             ///< "nvidia", "amd", "intel", "ascend"; "" is any
  std::vector<std::string> models;  ///< any of these short names, sorted; empty is any
  bool see_all = false;             ///< sees every device, holds none; gpus is 0
  int cpus = 0;                     ///< CPUs counted against the machine; 0 is not counted
  Memory memory{};                  ///< host memory; 0 is not counted and not limited
  int nodes = 1;                    ///< all of them at once or none
  std::vector<Label> selector;      ///< labels a node must have, sorted

  friend auto operator<=>(const Request&, const Request&) = default;
};

/// What may be done to a running job to make room for one ahead of it. Persisted: never renumber.
enum class Preemption {
  None = 1,
  Requeue = 2,  ///< told to stop, and queued again: it resumes from its own checkpoint
  Suspend = 3,  ///< stopped in place: gives back compute and CPUs, keeps memory
};
/// "requeue".
[[nodiscard]] constexpr std::string_view preemption_name(Preemption preemption) {
  switch (preemption) {
    case Preemption::None:
      return "none";
    case Preemption::Requeue:
      return "requeue";
    case Preemption::Suspend:
      return "suspend";
  }
  return "unknown";
}

// Persisted: never renumber.
enum class DependencyMode { All = 1, Any = 2 };

/// Which jobs have to finish first.
struct Dependencies {
  std::vector<JobId> jobs;  ///< sorted, without duplicates
  DependencyMode mode = DependencyMode::All;
  bool auto_cancel = true;  ///< cancel this job once it can no longer be satisfied

  friend bool operator==(const Dependencies&, const Dependencies&) = default;
};

constexpr int kDefaultPriority = 10;
constexpr int kMaxPriority = 255;

/// What was asked for: everything a decision or a listing needs. What is run is in Payload.
struct JobSpec {
  std::string name;
  User user;
  std::string project;
  Request request;
  int priority = kDefaultPriority;  ///< 0..255, higher first
  std::optional<std::chrono::seconds> time_limit;
  std::chrono::seconds grace{30};  ///< between SIGTERM and SIGKILL
  std::optional<WallTime> begin;   ///< not before
  Dependencies dependencies;
  bool hold = false;     ///< submitted on hold
  bool requeue = false;  ///< run again if it is lost (reboot, supervisor killed)
  int max_retries = 0;   ///< run again up to so many times if it fails
  Preemption preemption = Preemption::None;
  int preempt_signal = 0;   ///< sent instead of SIGTERM when it has to make room; 0 is SIGTERM
  std::string group;        ///< jobs of one group share max_concurrent; "" is none
  int max_concurrent = 0;   ///< most jobs of the group running at once; 0 is no limit
  bool allocation = false;  ///< it runs nothing: a program outside uses what it holds
  std::string command;      ///< one line for people: the command or script with its arguments
  std::string work_dir;     ///< absolute

  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

/// What is run. Kept in the store only: the engine never reads it.
struct Payload {
  std::vector<std::string> argv;  ///< argv[0] is the program, or the script's name if script is set
  std::optional<std::string> script;       ///< content of the script, copied at submission
  std::vector<std::string> environment;    ///< "NAME=value", as the submitter had it
  std::optional<std::string> config_name;  ///< base name of --config FILE
  std::string config;                      ///< its content
  std::uint32_t umask = 022;

  friend bool operator==(const Payload&, const Payload&) = default;
};

/// A text in one printable line, of which what is beyond 4 KiB is "...": JobSpec::command.
[[nodiscard]] std::string shown_line(std::string_view text);
/// The same of arguments, quoted as for a shell.
[[nodiscard]] std::string shown_line(std::span<const std::string> argv);

/// What a job holds on one node.
struct Allocation {
  std::string node;       ///< its name
  std::vector<int> gpus;  ///< by index on the node, ascending
  std::vector<int> cpus;  ///< numbers of the CPUs chosen for it, ascending; empty: any

  friend bool operator==(const Allocation&, const Allocation&) = default;
};

/// Memory of one of its devices that an active job is seen to use.
struct GpuMemoryUse {
  std::string node;
  int gpu = 0;  ///< index on the node
  Memory used{};
  Memory reserved{};  ///< for the job; 0: it declared none

  [[nodiscard]] bool is_over() const { return reserved > Memory{} && used > reserved; }
  friend bool operator==(const GpuMemoryUse&, const GpuMemoryUse&) = default;
};

/// One run of a job. Numbered from 1.
struct Attempt {
  int number = 0;
  Allocation allocation;          ///< on the first node, where the command is started
  std::vector<Allocation> peers;  ///< on the further nodes of a job that asked for several
  std::string placed_because;     ///< one line for people; "" where there was no choice
  WallTime started;               ///< when the engine decided to start it
  MonoTime started_mono;          ///< the same instant; only comparable within boot_id
  std::string boot_id;            ///< the boot it was started in
  int pid = 0;                    ///< of the job's first process, 0 until known
  bool over_memory = false;       ///< it was seen to use more GPU memory than is reserved for it
  bool on_other_gpus = false;     ///< it was seen to use a GPU it does not hold
  bool borrows = false;           ///< a GPU of it is another's, who lends it while it is idle

  friend bool operator==(const Attempt&, const Attempt&) = default;
};

/// What an attempt holds on each of its nodes, the first one first.
[[nodiscard]] std::vector<Allocation> allocations_of(const Attempt& attempt);

// Persisted: never renumber.
enum class EndReason {
  Exited = 1,            ///< the program ended by itself: exit_code
  Signalled = 2,         ///< a signal ended it: signal
  TimeLimit = 3,         ///< gflow ended it at its time limit
  Cancelled = 4,         ///< gflow ended it on request
  OutOfMemory = 5,       ///< the kernel killed it at its memory limit
  LaunchFailed = 6,      ///< it never ran: message says which step failed
  SupervisorDied = 7,    ///< its supervisor was killed; the exit code is not known
  Rebooted = 8,          ///< the machine went down while it ran
  DependencyFailed = 9,  ///< a job it depends on did not finish
  NotStarted = 10,       ///< nothing ran, for no fault of the job: it is started again
  Preempted = 11,        ///< gflow ended it to make room; it is queued again
};
/// "time_limit".
[[nodiscard]] constexpr std::string_view end_reason_name(EndReason reason) {
  switch (reason) {
    case EndReason::Exited:
      return "exited";
    case EndReason::Signalled:
      return "signalled";
    case EndReason::TimeLimit:
      return "time_limit";
    case EndReason::Cancelled:
      return "cancelled";
    case EndReason::OutOfMemory:
      return "out_of_memory";
    case EndReason::LaunchFailed:
      return "launch_failed";
    case EndReason::SupervisorDied:
      return "supervisor_died";
    case EndReason::Rebooted:
      return "rebooted";
    case EndReason::DependencyFailed:
      return "dependency_failed";
    case EndReason::NotStarted:
      return "not_started";
    case EndReason::Preempted:
      return "preempted";
  }
  return "unknown";
}

/// How an attempt, or a job that never ran, ended.
struct Outcome {
  EndReason reason = EndReason::Exited;
  int exit_code = 0;
  int signal = 0;
  std::string message{};                  ///< detail for a person; may be empty
  std::chrono::milliseconds run_time{0};  ///< on the monotonic clock
  std::chrono::milliseconds cpu_time{0};  ///< user and system, all processes
  Memory peak_memory{};                   ///< 0 if not known
  Memory peak_gpu_memory{};               ///< most on one of its devices; 0 if not known
  Failure failure{};                      ///< of LaunchFailed and NotStarted; not stored

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// Why a running job was told to stop.
struct Stop {
  EndReason reason = EndReason::Cancelled;
  User by;
  int signal = 0;  ///< sent instead of SIGTERM if not 0

  friend bool operator==(const Stop&, const Stop&) = default;
};

struct Queued {
  /// How often in a row it was queued again because an attempt was not started or was lost.
  int requeues = 0;
  /// Back-off after that, on the time gflow sees pass (Job::lived).
  std::optional<std::chrono::milliseconds> not_before{};
  std::string why{};  ///< what happened to that attempt
  /// When running jobs were last told to make room for it, on the same time.
  std::optional<std::chrono::milliseconds> preemption_at{};
  std::vector<JobId> victims{};  ///< these, ascending; who is gone meanwhile may still be there
  friend bool operator==(const Queued&, const Queued&) = default;
};
struct Held {
  std::string why;  ///< "" if the user asked for it
  friend bool operator==(const Held&, const Held&) = default;
};
/// Committed to start; whether the supervisor took it is not known yet.
struct Starting {
  Attempt attempt;
  std::optional<Stop> stop;
  int requeues = 0;
  /// See Queued: it is still not long ago where the attempt is taken back.
  std::optional<std::chrono::milliseconds> preemption_at{};
  friend bool operator==(const Starting&, const Starting&) = default;
};
/// Where the GPU memory of an attempt is that is, or was, suspended.
enum class Parking {
  None,    ///< on its GPU
  Begun,   ///< to be taken to host memory
  Parked,  ///< there
  Ending,  ///< to be given back: it goes on
};
[[nodiscard]] constexpr std::string_view parking_name(Parking parking) {
  switch (parking) {
    case Parking::None:
      return "none";
    case Parking::Begun:
      return "begun";
    case Parking::Parked:
      return "parked";
    case Parking::Ending:
      return "ending";
  }
  return "unknown";
}
struct ParkedMemory {
  Parking how = Parking::None;
  Memory memory{};        ///< Begun: at most; later what was taken, if that is known
  std::string refused{};  ///< why it could not be taken away: that is not tried again

  friend bool operator==(const ParkedMemory&, const ParkedMemory&) = default;
};
/// From one GPU of a node to another one.
struct GpuMove {
  int from = 0;  ///< index on the node
  int to = 0;
  std::string from_uuid{};
  std::string to_uuid{};

  friend bool operator==(const GpuMove&, const GpuMove&) = default;
};
struct Running {
  Attempt attempt;
  std::optional<Stop> stop;
  std::optional<MonoTime> suspended;   ///< since when it is suspended
  std::chrono::milliseconds stood{0};  ///< how long it was before that, in this attempt
  int requeues = 0;
  /// Who suspended it by hand, and only by hand does it go on; "": gflow did, to make room.
  std::string suspended_by{};
  /// Its GPU is idle, and another's until it wants it: parked, and its processes run on. Once it
  /// wants it, it is suspended until it has it back; its time limit goes on meanwhile. Suspended by
  /// hand it stands, and wants it when it is resumed.
  bool lends = false;
  /// It moves: until it is known on which of the two GPUs it is, its attempt has both.
  std::optional<GpuMove> move{};
  std::string move_refused{};  ///< why it stayed where it was when it was to move last, if it did
  ParkedMemory parked{};       ///< not stored, as the next: whoever runs the attempt knows it
  bool watches = false;        ///< it would be known when it wants back what it lends
  GpuIsolation isolation = GpuIsolation::None;  ///< what keeps it from other GPUs
  /// When it left a GPU by a move, and which: readings that began before show it there.
  struct Left {
    MonoTime at{};
    int gpu = 0;
    friend bool operator==(const Left&, const Left&) = default;
  };
  std::optional<Left> left{};
  friend bool operator==(const Running&, const Running&) = default;
};
struct Ended {
  Status status = Status::Finished;  ///< Finished, Failed, Cancelled, Timeout or Lost
  Outcome outcome;
  WallTime at;
  std::optional<Attempt> attempt;  ///< the last one, if it ever ran
  /// The time gflow had seen pass by then, over all boots: how long ago it ended is counted on it,
  /// so that a clock that is set does not make it old.
  std::chrono::milliseconds lived{0};
  friend bool operator==(const Ended&, const Ended&) = default;
};
using JobState = std::variant<Queued, Held, Starting, Running, Ended>;

/// A job: what was asked for and where it stands.
struct Job {
  JobId id;
  JobSpec spec;
  JobState state;
  WallTime submitted;
  /// The time gflow had seen pass when it was submitted, over all boots: how long it waits is
  /// counted on it, so that a clock that is set changes no place in the queue.
  std::chrono::milliseconds lived{0};
  std::int64_t payload_bytes = 0;       ///< as bytes_of_each(); 0 in stores that had not kept it
  int attempts = 0;                     ///< runs started so far
  int retries = 0;                      ///< of them, how many replaced a failed run
  int preemptions = 0;                  ///< of them, how many had to make room
  std::chrono::milliseconds served{0};  ///< run time of the attempts before the present one
  /// GPU time of these: for each, what was asked for then.
  std::chrono::milliseconds served_gpu_time{0};

  friend bool operator==(const Job&, const Job&) = default;
};

/// What its texts take, in bytes; lists of strings as they are stored, with 4 more for each.
[[nodiscard]] std::size_t bytes_of(const JobSpec& spec);
[[nodiscard]] std::size_t bytes_of(const Payload& payload);
/// Of a job with its payload.
[[nodiscard]] std::int64_t bytes_of(const Job& job);

[[nodiscard]] Status status_of(const Job& job);
[[nodiscard]] bool is_pending(const Job& job);  ///< Queued or Held
[[nodiscard]] bool is_active(const Job& job);   ///< Starting or Running: holds resources
[[nodiscard]] bool is_ended(const Job& job);
/// What it cannot do, being as it is: "job 7 is Running: only a waiting job can be held".
[[nodiscard]] std::unexpected<Error> wrong_state(const Job& job, std::string_view wish);
/// The attempt that runs, or ran last; null if it never started.
[[nodiscard]] const Attempt* attempt_of(const Job& job);
/// GPUs it asks for, all nodes together, in parts of one: Share::kWholeParts.
[[nodiscard]] std::int64_t gpu_parts_of(const Request& request);
/// These GPUs times the time, a share counting as its part.
[[nodiscard]] std::chrono::milliseconds gpu_time_of(const Request& request,
                                                    std::chrono::milliseconds held);
/// The same of a job that has ended, in all its attempts.
[[nodiscard]] std::chrono::milliseconds gpu_time_of(const Job& job, const Ended& ended);
/// How long its present attempt has run by `now`, or its last one ran in all, on the monotonic
/// clock: without the time it was suspended. 0 for an attempt of another boot that has not ended.
[[nodiscard]] std::chrono::milliseconds run_time_of(const Job& job, MonoTime now);

/// "9 (SIGKILL)"; just the number for one without a name.
[[nodiscard]] std::string signal_text(int signal);
/// "SIGTERM"; "signal 40" for one without a name.
[[nodiscard]] std::string signal_name(int signal);
/// The status an outcome gives: exit code 0 is Finished, TimeLimit is Timeout, ...
[[nodiscard]] Status status_for(const Outcome& outcome);
/// One sentence: "exited with code 1", "killed by signal 9 (SIGKILL)", "launch failed: chdir ...".
[[nodiscard]] std::string outcome_text(const Outcome& outcome);
/// The outcome as users other than the job's owner may read it: without the message of a launch
/// that failed, which names programs, directories and files of the owner.
[[nodiscard]] Outcome public_part(Outcome outcome);
/// The same of why gflow let a job wait or put it on hold; "" stays "".
[[nodiscard]] std::string public_part(const std::string& why);

}  // namespace gflow
