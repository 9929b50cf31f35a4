// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/translate.h"

/// Sentences that are kept: made once, for readers of any language, and read when nobody knows any
/// more what they were made of. They are kept in English, as text. The table below is all there is
/// of them: it makes them, and it knows them again.
namespace gflow {

enum class Kept {
  CancelledBeforeStart,
  NotStored,
  DependencyEnded,
  NodeRemoved,
  NodeRemovedFor,
  NobodyOnNode,
  SeveralTimes,
  LastAttemptFailed,
  LaunchFailedFor,
  NeverStartedFor,
  WentDownFor,
  DependencyFailedFor,
  SupervisorKilled,
  SupervisorKilledMeanwhile,
  RunsElsewhere,
  SupervisorStopped,
  SupervisorHeld,
  RanOn,
  GpuMemoryLost,
  RanPastGrace,
  DirectoryRemoved,
  MachineRestarted,
  LostWithDatabase,
  MayHaveRun,
  PayloadLost,
  Rebuilt,
  CannotRun,
  CannotRunInterpreter,
  CannotChangeDirectory,
  CannotOpenLog,
  CannotBecomeUser,
  CannotFork,
  CannotJoinCgroup,
  CannotOpenStdin,
  CannotReadScript,
  CannotStartInTime,
  CannotJoinKeyring,
  CannotTakeMark,
  CannotKeepFromGpus,
  EndedBeforeProgramFor,
  EndedBeforeProgram,
  SupervisorToldToEnd,
  SupervisorSaid,
  SupervisorKilledBefore,
  SupervisorEndedBefore,
  Ring,
  BestOfMachine,
  BestOfFree,
  NotBestOfFree,
  OneSwitch,
  Link,
  Links,
  NumaNode,
  NumaNodes,
  UsedOtherGpus,
  UsedMoreMemory,
  PodRefused,
  SliceFirst,
  SliceUnknown,
  GpuDrained,
  GpuDrainedFor,
};

/// In the order of Kept. One that begins with a placeholder begins with a number.
struct KeptSentence {
  Kept which;
  const char* text;
};
inline constexpr auto kKeptSentences = std::to_array<KeptSentence>({
    {Kept::CancelledBeforeStart, tr_later("cancelled by {} before it started")},
    {Kept::NotStored, tr_later("it was not stored")},
    {Kept::DependencyEnded, tr_later("job {} ({})")},
    {Kept::NodeRemoved, tr_later("node {} was removed")},
    {Kept::NodeRemovedFor, tr_later("node {} was removed: {}")},
    {Kept::NobodyOnNode, tr_later("nobody runs jobs on node {}")},
    {Kept::SeveralTimes, tr_later("{} times in a row without a fault of its own: {}")},
    {Kept::LastAttemptFailed, tr_later("its last attempt failed")},
    {Kept::LaunchFailedFor, tr_later("launch failed: {}")},
    {Kept::NeverStartedFor, tr_later("never started: {}")},
    {Kept::WentDownFor, tr_later("the machine went down while it ran: {}")},
    {Kept::DependencyFailedFor, tr_later("a job it depends on did not finish: {}")},
    {Kept::SupervisorKilled, tr_later("its supervisor was killed; how the job ended is not known")},
    {Kept::SupervisorKilledMeanwhile,
     tr_later(
         "its supervisor was killed while the daemon was down; how the job ended is not known")},
    {Kept::RunsElsewhere,
     tr_later("it runs on under another state directory, of which this one is a copy (supervisor: "
              "pid {})")},
    {Kept::SupervisorStopped,
     tr_later("its supervisor was stopped again and again, and was killed with it")},
    {Kept::SupervisorHeld,
     tr_later("its supervisor was held when the job ended; how it ended is not known")},
    {Kept::RanOn, tr_later("it ran on while it was suspended, and was killed")},
    {Kept::GpuMemoryLost,
     tr_later("the driver lost its GPU memory while it was suspended, and it was killed: {}")},
    {Kept::RanPastGrace,
     tr_later("it ran on long after its grace, and was killed with its supervisor")},
    {Kept::DirectoryRemoved,
     tr_later("the directory of its attempt was removed while it ran; how it ended is not known")},
    {Kept::MachineRestarted, tr_later("the machine was restarted while the job ran")},
    {Kept::LostWithDatabase, tr_later("how it ended was lost with the database; its log may tell")},
    {Kept::MayHaveRun,
     tr_later("the database was rebuilt from a backup, and it may have run since: see its log "
              "before you release it")},
    {Kept::PayloadLost, tr_later("what it runs was lost with the database: submit it again")},
    {Kept::Rebuilt, tr_later("rebuilt from its attempt")},
    // Written by gflow-shim, which has its own words for them: tests compare the two.
    {Kept::CannotRun, tr_later("run '{}': {}")},
    {Kept::CannotRunInterpreter, tr_later("run the interpreter of the script {}: {}")},
    {Kept::CannotChangeDirectory, tr_later("change to the working directory '{}': {}")},
    {Kept::CannotOpenLog, tr_later("open the log '{}': {}")},
    {Kept::CannotBecomeUser, tr_later("become the user of the job (uid {}): {}")},
    {Kept::CannotFork, tr_later("create the process: {}")},
    {Kept::CannotJoinCgroup, tr_later("join the control group: {}")},
    {Kept::CannotOpenStdin, tr_later("open /dev/null: {}")},
    {Kept::CannotReadScript, tr_later("read the script: {}")},
    {Kept::CannotStartInTime, tr_later("start in time: {}")},
    {Kept::CannotJoinKeyring, tr_later("make a session keyring: {}")},
    {Kept::CannotTakeMark, tr_later("take the mark of its processes: {}")},
    {Kept::CannotKeepFromGpus, tr_later("keep it from GPUs of others (landlock): {}")},
    {Kept::EndedBeforeProgramFor,
     tr_later("its first process ended before it ran the program of the job ({})")},
    {Kept::EndedBeforeProgram,
     tr_later("its first process ended before it ran the program of the job")},
    {Kept::SupervisorToldToEnd, tr_later("its supervisor was told to end (SIGTERM)")},
    {Kept::SupervisorSaid, tr_later("its supervisor: {}")},
    {Kept::SupervisorKilledBefore,
     tr_later("its supervisor was killed (signal {}) before the program of the job ran")},
    {Kept::SupervisorEndedBefore, tr_later("its supervisor ended before it took the job")},
    {Kept::Ring, tr_later("ring of {} GB/s, {}")},
    {Kept::BestOfMachine, tr_later("the best of this machine")},
    {Kept::BestOfFree, tr_later("the best of the free GPUs ({} GB/s on an idle machine)")},
    {Kept::NotBestOfFree, tr_later("the free GPUs reach {} GB/s, an idle machine {} GB/s")},
    {Kept::OneSwitch, tr_later("one switch")},
    {Kept::Link, tr_later("{} link")},
    {Kept::Links, tr_later("{} links")},
    {Kept::NumaNode, tr_later("{} NUMA node")},
    {Kept::NumaNodes, tr_later("{} NUMA nodes")},
    {Kept::UsedOtherGpus, tr_later("it used a GPU that it does not hold")},
    {Kept::UsedMoreMemory, tr_later("it used more GPU memory than is reserved for it")},
    {Kept::PodRefused, tr_later("gflow-kube does not take it: {}")},
    {Kept::SliceFirst, tr_later("another slice is made or removed first")},
    {Kept::SliceUnknown, tr_later("what became of another slice is not known: {}")},
    {Kept::GpuDrained, tr_later("the GPU is drained")},
    {Kept::GpuDrainedFor, tr_later("the GPU is drained: {}")},
});
static_assert(kKeptSentences.size() == static_cast<std::size_t>(Kept::GpuDrainedFor) + 1);
static_assert([] {
  for (std::size_t i = 0; i < kKeptSentences.size(); ++i) {
    if (kKeptSentences[i].which != static_cast<Kept>(i)) return false;
  }
  return true;
}());

/// The sentence, in English. What stands in it may itself be a kept sentence.
template <Kept kWhich, typename... Values>
[[nodiscard]] std::string kept(Values&&... values) {
  constexpr fmt::format_string<Values...> kFormat =
      kKeptSentences[static_cast<std::size_t>(kWhich)].text;
  return fmt::format(kFormat, std::forward<Values>(values)...);
}

/// Whether a kept text is that sentence.
[[nodiscard]] bool is_kept(std::string_view text, Kept which);

/// A kept text in the reader's language: a sentence, or several with "; " between. What is not of
/// the table, as what the system said, stays as it is.
[[nodiscard]] std::string kept_text(std::string_view text);

}  // namespace gflow
