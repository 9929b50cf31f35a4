// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gflow::attempt {

/// How an attempt ended. Persisted: never renumber. The same numbers as gflow::EndReason.
enum class Ending : std::uint32_t {
  Exited = 1,
  Signalled = 2,
  TimeLimit = 3,
  Cancelled = 4,
  OutOfMemory = 5,
  LaunchFailed = 6,
  SupervisorDied = 7,
  Rebooted = 8,
  DependencyFailed = 9,
  Preempted = 11,
};
[[nodiscard]] std::optional<Ending> ending_of(std::uint32_t number);

/// What was being done when a launch failed. Persisted: never renumber.
enum class Step : std::uint32_t {
  None = 0,
  Fork = 1,
  JoinCgroup = 2,
  OpenLog = 3,
  OpenStdin = 4,
  BecomeUser = 5,
  ChangeDirectory = 6,
  ReadScript = 7,
  RunInterpreter = 8,
  RunProgram = 9,
  StartInTime = 10,
  JoinKeyring = 11,
  TakeMark = 12,
  ReachProgram = 13,  ///< it ended before it ran the program, and said nothing
  KeepFromGpus = 14,
};
[[nodiscard]] std::optional<Step> step_of(std::uint32_t number);
/// What a person calls it: "change to the working directory".
[[nodiscard]] std::string_view step_text(Step step);

/// All that is known of an attempt's end.
struct ExitRecord {
  std::uint64_t job = 0;
  std::uint32_t attempt = 0;
  Ending reason = Ending::Exited;
  int exit_code = 0;
  int signal = 0;
  Step step = Step::None;  ///< of a launch that failed
  int error = 0;           ///< errno of it
  std::uint32_t oom_kills = 0;
  std::chrono::milliseconds run_time{
      0};  ///< on the monotonic clock, until the last process was gone, without what it stood still
  std::chrono::milliseconds cpu_time{0};
  std::int64_t peak_memory_bytes = 0;  ///< 0: not known
  std::int64_t started_wall_ms = 0;
  std::int64_t ended_wall_ms = 0;
  std::string launch_id;  ///< at most 39 bytes are kept
  std::string boot_id;    ///< the same
  std::string message;    ///< at most kMessageMost bytes are kept

  friend bool operator==(const ExitRecord&, const ExitRecord&) = default;
};

constexpr std::size_t kSlotSize = 2048;
constexpr std::size_t kExitFileSize = 2 * kSlotSize;
constexpr std::size_t kMessageMost = 1024;
/// Behind both slots: the pid of the job's first process as a line of text. It writes that itself,
/// as the last thing before it runs the program: without it no program of the job ever ran.
constexpr std::size_t kStartedSize = 16;

/// One half of the file `exit`. The file is allocated before the job starts and overwritten in
/// place, so that a full disk cannot lose the record; a slot torn by a power failure fails its
/// CRC, and the other one counts.
using SlotBytes = std::array<char, kSlotSize>;
[[nodiscard]] SlotBytes encode_slot(const ExitRecord& record, std::uint32_t sequence);
/// Where in the file the slot of a sequence number lies: they alternate.
[[nodiscard]] constexpr std::size_t slot_offset(std::uint32_t sequence) {
  return sequence % 2 * kSlotSize;
}
/// The newest valid record of a file's content; empty if there is none.
[[nodiscard]] std::optional<ExitRecord> decode_exit_file(std::string_view content);
/// The pid behind the slots of a file's content; 0 if there is none.
[[nodiscard]] std::int32_t started_pid_in(std::string_view content);

}  // namespace gflow::attempt
