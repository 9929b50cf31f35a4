// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "core/job.h"
#include "core/job_event.h"
#include "core/job_range.h"
#include "core/launch.h"
#include "core/made_slice.h"

namespace gflow::engine {

/// What the shell has to do, in this order: first all Save, SaveRange, Forget, SaveDrains,
/// SaveHealth and SaveSlices of a tick in one transaction; only when that is committed StopAttempt,
/// Suspend, Resume, Move, CutSlice and ChangeLimit; then Answer, Notify, Overuse and WakeAt; Launch
/// last.
namespace effect {

/// Write this job as it now stands in the state, and what happened to it.
struct Save {
  JobId job;
  Happening what = Happening::Nothing;
};
/// Write these new jobs as they are here, and that they were submitted. What changed of one of them
/// since then is in a Save.
struct SaveRange {
  std::shared_ptr<const JobRange> range;
};
/// The job is gone from the state: delete it and what belongs to it.
struct Forget {
  JobId job;
};
/// Start the attempt the job is in (Starting), as ordered. The order is shared by the copies of
/// this effect.
struct Launch {
  std::shared_ptr<const LaunchOrder> order;
};
/// Tell the supervisor to end the attempt: signal (or SIGTERM), grace, SIGKILL. Safe to repeat.
struct StopAttempt {
  JobId job;
  int attempt = 0;
};
/// Send this signal to all processes of the attempt. Once; lost if the daemon ends first.
struct Signal {
  JobId job;
  int attempt = 0;
  int number = 0;
};
/// Stop every process of the attempt where it stands, or let it go on. Of one that lends its GPU
/// only take that away, or give it back. Safe to repeat.
struct Suspend {
  JobId job;
  int attempt = 0;
};
struct Resume {
  JobId job;
  int attempt = 0;
};
/// Have the attempt moved as Running::move says. What becomes of it comes back as MoveEnded. Safe
/// to repeat.
struct Move {
  JobId job;
  int attempt = 0;
};
/// The drained devices and nodes changed: write State::drains().
struct SaveDrains {};
/// What failed launches say of nodes changed: write State::unhealthy().
struct SaveHealth {};
/// What of the slices of MIG is gflow's changed: write State::slices().
struct SaveSlices {};
/// Have this slice made or removed, by its stage. What becomes of it comes back as SliceChanged.
/// Safe to repeat.
struct CutSlice {
  MadeSlice slice;
};
/// Tell the executor that the time limit, or that of the share, is another one now.
struct ChangeLimit {
  JobId job;
  int attempt = 0;
};
/// An attempt was seen to use more of the devices than it was given: to be said in the log. Once an
/// attempt for memory of a device it holds, and once for a device it does not hold; and when it is
/// stopped for that.
struct Overuse {
  JobId job;
  int gpu = 0;
  std::optional<Memory> used{};      ///< empty: the device does not tell
  std::optional<Memory> reserved{};  ///< for it; empty: it does not hold the device
  bool is_stopped = false;
};
/// The answer to Submit: the ids given, in the order of the specs; or to another request: the jobs
/// it changed; or why nothing was done.
struct Answer {
  Result<std::vector<JobId>> jobs;
};
/// The job changed in a way people can see.
struct Notify {
  JobId job;
};
/// Step again with a Tick at this time on the monotonic clock, or when the calendar says so.
struct WakeAt {
  std::optional<MonoTime> mono;
  std::optional<WallTime> wall;
};

}  // namespace effect

using Effect = std::variant<effect::Save,
                            effect::SaveRange,
                            effect::Forget,
                            effect::Launch,
                            effect::StopAttempt,
                            effect::Signal,
                            effect::Suspend,
                            effect::Resume,
                            effect::Move,
                            effect::SaveDrains,
                            effect::SaveHealth,
                            effect::SaveSlices,
                            effect::CutSlice,
                            effect::ChangeLimit,
                            effect::Overuse,
                            effect::Answer,
                            effect::Notify,
                            effect::WakeAt>;

}  // namespace gflow::engine
