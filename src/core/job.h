// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/id.h"
#include "base/memory.h"
#include "base/time.h"

namespace gflow {

struct JobTag;
/// Number of a job: given once, in order of submission, never reused.
using JobId = Id<JobTag>;

/// Who a job belongs to, as the kernel told it over the socket.
struct User {
  std::uint32_t uid = 0;
  std::string name;

  friend bool operator==(const User&, const User&) = default;
};

/// What one job holds while it runs.
struct Request {
  int gpus = 0;     ///< whole devices
  int cpus = 0;     ///< CPUs counted against the machine; 0 is not counted
  Memory memory{};  ///< host memory; 0 is not counted and not limited

  friend bool operator==(const Request&, const Request&) = default;
};

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
  bool hold = false;       ///< submitted on hold
  bool requeue = false;    ///< run again if it is lost (reboot, supervisor killed)
  int max_retries = 0;     ///< run again up to so many times if it fails
  std::string group;       ///< jobs of one group share max_concurrent; "" is none
  int max_concurrent = 0;  ///< most jobs of the group running at once; 0 is no limit
  std::string command;     ///< one line for people: the command or script with its arguments
  std::string work_dir;    ///< absolute

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

/// The devices a job holds, by index on the machine, ascending.
struct Allocation {
  std::vector<int> gpus;

  friend bool operator==(const Allocation&, const Allocation&) = default;
};

/// One run of a job. Numbered from 1.
struct Attempt {
  int number = 0;
  Allocation allocation;
  WallTime started;       ///< when the engine decided to start it
  MonoTime started_mono;  ///< the same instant; only comparable within boot_id
  std::string boot_id;    ///< the boot it was started in
  int pid = 0;            ///< of the job's first process, 0 until known

  friend bool operator==(const Attempt&, const Attempt&) = default;
};

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
  NotStarted = 10,       ///< no supervisor took it, nothing ran: it may be started again
};

/// How an attempt, or a job that never ran, ended.
struct Outcome {
  EndReason reason = EndReason::Exited;
  int exit_code = 0;
  int signal = 0;
  std::string message{};                  ///< detail for a person; may be empty
  std::chrono::milliseconds run_time{0};  ///< on the monotonic clock
  std::chrono::milliseconds cpu_time{0};  ///< user and system, all processes
  Memory peak_memory{};                   ///< 0 if not known

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// What users see and filter by. Persisted: never renumber.
enum class Status {
  Queued = 1,      ///< PD
  Hold = 2,        ///< H
  Starting = 3,    ///< CF
  Running = 4,     ///< R
  Completing = 5,  ///< CG: told to stop, processes not gone yet
  Finished = 6,    ///< CD: exit code 0
  Failed = 7,      ///< F
  Cancelled = 8,   ///< CA
  Timeout = 9,     ///< TO
  Lost = 10,       ///< LO: the machine or the supervisor went away under it
};

/// Why a running job was told to stop.
struct Stop {
  EndReason reason = EndReason::Cancelled;
  User by;
  int signal = 0;  ///< sent instead of SIGTERM if not 0

  friend bool operator==(const Stop&, const Stop&) = default;
};

struct Queued {
  int launch_failures = 0;             ///< in a row
  std::optional<MonoTime> not_before;  ///< back-off after a failed launch
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
  int launch_failures = 0;
  friend bool operator==(const Starting&, const Starting&) = default;
};
struct Running {
  Attempt attempt;
  std::optional<Stop> stop;
  friend bool operator==(const Running&, const Running&) = default;
};
struct Ended {
  Status status = Status::Finished;  ///< Finished, Failed, Cancelled, Timeout or Lost
  Outcome outcome;
  WallTime at;
  std::optional<Attempt> attempt;  ///< the last one, if it ever ran
  friend bool operator==(const Ended&, const Ended&) = default;
};
using JobState = std::variant<Queued, Held, Starting, Running, Ended>;

/// A job: what was asked for and where it stands.
struct Job {
  JobId id;
  JobSpec spec;
  JobState state;
  WallTime submitted;
  int attempts = 0;  ///< runs started so far
  int retries = 0;   ///< of them, how many replaced a failed run

  friend bool operator==(const Job&, const Job&) = default;
};

[[nodiscard]] Status status_of(const Job& job);
[[nodiscard]] bool is_pending(const Job& job);  ///< Queued or Held
[[nodiscard]] bool is_active(const Job& job);   ///< Starting or Running: holds resources
[[nodiscard]] bool is_ended(const Job& job);
/// The attempt that runs, or ran last; null if it never started.
[[nodiscard]] const Attempt* attempt_of(const Job& job);

[[nodiscard]] std::string_view status_name(Status status);  ///< "Queued"
[[nodiscard]] std::string_view status_code(Status status);  ///< "PD"
/// Reads a name or a code of either case. Errors: Code::Usage with the names there are.
[[nodiscard]] Result<Status> parse_status(std::string_view text);
[[nodiscard]] std::string_view end_reason_name(EndReason reason);  ///< "time_limit"
/// The status an outcome gives: exit code 0 is Finished, TimeLimit is Timeout, ...
[[nodiscard]] Status status_for(const Outcome& outcome);
/// One sentence: "exited with code 1", "killed by signal 9 (SIGKILL)", "launch failed: chdir ...".
[[nodiscard]] std::string outcome_text(const Outcome& outcome);

}  // namespace gflow
