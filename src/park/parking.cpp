// SPDX-License-Identifier: Apache-2.0
#include "park/parking.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/text.h"
#include "os/file.h"
#include "os/host.h"
#include "os/process.h"
#include "park/watchers.h"
#include "runner/processes.h"

namespace gflow::park {
namespace {

/// A job that starts processes all the time is not waited for.
constexpr int kRounds = 8;

/// Said of a job of which some processes are parked and some cannot be: half of it never runs.
constexpr const char* kAllWait = "; all its processes wait until it is unparked";

Memory sum_of(const ByGpu& amounts) {
  Memory all{};
  for (const auto& [gpu, memory] : amounts) all += memory;
  return all;
}

Result<void> note(int record, int pid, const ByGpu& amounts) {
  std::string text;
  for (const auto& [gpu, memory] : amounts)
    text += fmt::format("{} {} {}\n", pid, gpu, memory.bytes);
  return record < 0 ? Result<void>() : os::write_all(record, text);
}

bool has_ended(const ProcessFacts& process) {
  const auto now = os::process_facts(process.pid);
  return !now || now->start_time != process.start_time || now->is_dead();
}

}  // namespace

Result<std::vector<ProcessFacts>> Parking::standing(Standing wanted) const {
  std::vector<ProcessFacts> found = GF_TRY(runner::processes_below(supervisor_));
  std::erase_if(found, [&](const ProcessFacts& process) {
    return driver_.standing_of(process.pid) != wanted;
  });
  return found;
}

Result<void> Parking::each(Standing standing, Act act) const {
  Result<void> all;
  for (const ProcessFacts& process : GF_TRY(this->standing(standing))) {
    const Result<void> done = (driver_.*act)(process.pid);
    if (all && !done && !has_ended(process)) all = done;
  }
  return all;
}

/// It has ended, or stands so already: what an earlier call asked of it may be done late.
bool Parking::is_past(const ProcessFacts& process, Standing standing) const {
  return has_ended(process) || driver_.standing_of(process.pid) == standing;
}

/// What is locked may still start processes, which begin to use the GPU meanwhile.
Result<void> Parking::lock_all() const {
  for (int round = 0; round < kRounds; ++round) {
    const auto running = GF_TRY(standing(Standing::Running));
    if (running.empty()) return {};
    for (const ProcessFacts& process : running) {
      const Result<void> locked = driver_.lock(process.pid, lock_patience_);
      if (!locked && !is_past(process, Standing::Locked)) return locked;
    }
  }
  return fail(Code::Timeout, "its processes begin to use the GPU faster than they can be locked");
}

/// One that is stopped would keep the driver waiting. Those of a job that was told to go on just
/// now are waited for.
Result<void> Parking::check_running() const {
  constexpr int kLooks = 200;
  constexpr int kPauseMs = 10;
  for (int looks = 1;; ++looks) {
    const auto all = GF_TRY(runner::processes_below(supervisor_));
    const auto stopped = std::ranges::find_if(all, &ProcessFacts::is_stopped);
    if (stopped == all.end()) return {};
    if (looks == kLooks) {
      return fail(Code::WrongState, fmt::format("its process {} is stopped", stopped->pid));
    }
    (void)::poll(nullptr, 0, kPauseMs);
  }
}

/// Of all that the driver knows, however they stand.
Result<void> Parking::check_watched(const Limits& limits) const {
  if (!limits.watched) return {};
  std::vector<ProcessFacts> known = GF_TRY(runner::processes_below(supervisor_));
  std::erase_if(known,
                [&](const ProcessFacts& process) { return !driver_.standing_of(process.pid); });
  return check_watchers(*limits.watched, known);
}

/// Of all that have some: what is promised to others of the host's memory is not taken.
Result<void> Parking::check_amount(const Limits& limits, const ByGpu& taken) const {
  const auto all = GF_TRY(runner::processes_below(supervisor_));
  const Memory rest = sum_of(GF_TRY(memory_.used_by(all)));
  const Memory needed = rest + sum_of(taken);
  if (limits.most && needed > *limits.most) {
    return fail(Code::Exhausted,
                fmt::format("its processes have {} of GPU memory, and {} may be taken",
                            memory_text(needed, *limits.most),
                            memory_text(*limits.most, needed)));
  }
  const Memory available = os::available_memory();
  if (available > Memory{} && rest > available) {
    return fail(Code::Exhausted,
                fmt::format("the host has {} of memory available for {} of GPU memory",
                            memory_text(available, rest),
                            memory_text(rest, available)));
  }
  return {};
}

Result<void> Parking::checkpoint(const ProcessFacts& process, int record, ByGpu& taken) const {
  const ByGpu had = GF_TRY(memory_.used_by({process}));
  GF_CHECK(note(record, process.pid, had));
  const Result<void> done = driver_.checkpoint(process.pid);
  // An earlier call's unlock may come late: it is locked again in the next round.
  if (!done && driver_.standing_of(process.pid) == Standing::Running) return {};
  if (!done && !is_past(process, Standing::Parked)) return done;
  for (const auto& [gpu, bytes] : had) taken[gpu] += bytes;
  return {};
}

/// Done is what NVML sees to be done: a process that the driver does not name, or one that came
/// meanwhile, would keep its memory.
Result<void> Parking::take_memory(const Limits& limits, ByGpu& taken) const {
  for (int round = 0; round < kRounds; ++round) {
    GF_CHECK(lock_all());
    GF_CHECK(check_watched(limits));  // one may have come meanwhile
    GF_CHECK(check_amount(limits, taken));
    for (const ProcessFacts& process : GF_TRY(standing(Standing::Locked))) {
      GF_CHECK(checkpoint(process, limits.record, taken));
    }
    const auto all = GF_TRY(runner::processes_below(supervisor_));
    const bool is_left = !GF_TRY(memory_.used_by(all)).empty();
    if (!is_left && GF_TRY(standing(Standing::Running)).empty()) return {};
  }
  return fail(Code::Failure, "processes of it have GPU memory that the driver does not take away");
}

Outcome Parking::outcome(const Result<void>& tried, const Result<void>& undone) const {
  if (tried) return {};
  const auto broken = standing(Standing::Broken);
  if (broken && !broken->empty()) {
    return {Standstill::Broken,
            fmt::format("the driver lost the GPU memory of process {}: {}",
                        broken->front().pid,
                        tried.error().message)};
  }
  if (undone) return {Standstill::Refused, tried.error().message};
  return {Standstill::Unclear,
          fmt::format("{}; then {}", tried.error().message, undone.error().message)};
}

Outcome Parking::park(const Limits& limits) const {
  if (const auto running = check_running(); !running) {
    return {Standstill::Refused, running.error().message};
  }
  if (const auto watched = check_watched(limits); !watched) {
    return {Standstill::Refused, watched.error().message};
  }
  const auto earlier = standing(Standing::Parked);
  if (!earlier) return {Standstill::Refused, earlier.error().message};
  ByGpu taken;
  const Result<void> tried = take_memory(limits, taken);
  if (tried) return {Standstill::Done, "", std::move(taken)};
  // How much room those need that an earlier call parked is not known here: unpark() is told.
  if (!earlier->empty()) return {Standstill::Unclear, tried.error().message + kAllWait};
  const Result<void> given_back = give_back(taken);
  if (given_back) return outcome(tried, each(Standing::Locked, &CheckpointDriver::unlock));
  (void)each(Standing::Locked, &CheckpointDriver::checkpoint);  // as many as can be
  const bool is_lost = given_back.error().code == Code::Damaged;
  return {
      is_lost ? Standstill::Broken : Standstill::Unclear,
      fmt::format("{}; then {}{}", tried.error().message, given_back.error().message, kAllWait)};
}

/// Not one after one that cannot have its own: where there is no room, the driver would lose it.
Result<void> Parking::give_back(const ByGpu& needed, const std::optional<Move>& move) const {
  const auto parked = GF_TRY(standing(Standing::Parked));
  if (!parked.empty()) GF_CHECK(memory_.check_room(needed));
  for (const ProcessFacts& process : parked) {
    const Result<void> done = restore(process.pid, move);
    if (!done && !is_past(process, Standing::Locked)) return done;
  }
  if (!move) return {};
  const auto all = GF_TRY(runner::processes_below(supervisor_));
  const ByGpu had = GF_TRY(memory_.used_by(all));
  if (!had.contains(move->pair.from)) return {};
  return fail(Code::Failure,
              fmt::format("processes of it are on GPU {} still", printable(move->pair.from)));
}

/// Which of the two GPUs a process was on when it was parked the driver knows: it takes no pair
/// that does not name that one. What never was on the other one goes back without a pair, as
/// drivers that take none have it.
Result<void> Parking::restore(int pid, const std::optional<Move>& move) const {
  if (!move) return driver_.restore(pid);
  const auto moved = driver_.restore_onto(pid, move->pair);
  if (moved || moved.error().code != Code::Infeasible) return moved;
  const auto stays = driver_.restore_onto(pid, {move->pair.to, move->pair.to});
  if (stays || stays.error().code != Code::Infeasible) return stays;
  return move->is_back ? driver_.restore(pid) : moved;
}

/// Before the first is brought there. The way back is tried whatever the driver is.
Result<void> Parking::check_move(const Move& move) const {
  if (move.is_back) return {};
  if (!driver_.can_move()) {
    return fail(Code::Infeasible, std::string(kCannotMove));
  }
  return memory_.check_alike(move.pair.from, move.pair.to);
}

/// Has parked who is not where all are to go: on the way there, what began to use the GPU since the
/// others were parked; on the way back, what was restored there, by an earlier call, too, that the
/// driver carried out late.
Result<void> Parking::gather(const Move& move, ByGpu& needed, int record) const {
  const auto all = GF_TRY(runner::processes_below(supervisor_));
  const bool is_left = GF_TRY(memory_.used_by(all)).contains(move.pair.from);
  // An earlier call brought all of them there.
  if (!is_left && GF_TRY(standing(Standing::Parked)).empty()) return {};
  ByGpu taken;
  if (!move.is_back) {
    const auto gathered = take_memory({.record = record}, taken);
    needed[move.pair.to] += taken[move.pair.from];
    return gathered;
  }
  if (!is_left) return {};
  for (int round = 0; round < kRounds; ++round) {
    GF_CHECK(lock_all());
    bool is_any = false;
    for (const ProcessFacts& process : GF_TRY(standing(Standing::Locked))) {
      const ByGpu had = GF_TRY(memory_.used_by({process}));
      if (!had.contains(move.pair.from)) continue;
      is_any = true;
      GF_CHECK(checkpoint(process, record, taken));
    }
    if (!is_any && GF_TRY(standing(Standing::Running)).empty()) break;
  }
  return {};
}

Result<void> Parking::all_run_on() const {
  GF_CHECK(each(Standing::Locked, &CheckpointDriver::unlock));
  for (const Standing other : {Standing::Locked, Standing::Parked, Standing::Broken}) {
    if (GF_TRY(standing(other)).empty()) continue;
    return fail(Code::Failure, "not all of its processes go on");
  }
  return {};
}

bool Parking::is_all_parked() const {
  for (const Standing other : {Standing::Running, Standing::Locked, Standing::Broken}) {
    const auto those = standing(other);
    if (!those || !those->empty()) return false;
  }
  return true;
}

/// What an earlier call asked of the driver, which was killed, may be done behind what this one
/// saw: that is waited for.
Outcome Parking::unpark(const ByGpu& needed) const { return bring_back(needed, std::nullopt, {}); }

Outcome Parking::unpark_onto(const Move& move, ByGpu needed, int record) const {
  Result<void> can = check_move(move);
  if (can) can = gather(move, needed, record);
  return bring_back(needed, move, can);
}

/// `can`: whether that is to be tried.
Outcome Parking::bring_back(const ByGpu& needed,
                            const std::optional<Move>& move,
                            const Result<void>& can) const {
  constexpr int kLooks = 200;
  constexpr int kPauseMs = 10;
  const Result<void> given_back = can ? give_back(needed, move) : can;
  for (int looks = 1; given_back; ++looks) {
    const Result<void> run_on = all_run_on();
    const auto broken = standing(Standing::Broken);
    const bool is_over = run_on || looks == kLooks || !broken || !broken->empty();
    if (is_over) return outcome(run_on, run_on);
    (void)::poll(nullptr, 0, kPauseMs);
    // Some of it may be back by now: that there is no room for all says nothing.
    if (const auto again = give_back(needed, move); !again) {
      const bool is_lost = again.error().code == Code::Damaged;
      return {is_lost ? Standstill::Broken : Standstill::Unclear, again.error().message};
    }
  }
  const Result<void> undone = each(Standing::Locked, &CheckpointDriver::checkpoint);
  if (given_back.error().code == Code::Damaged) {
    return {Standstill::Broken, given_back.error().message};
  }
  const bool cannot_be = given_back.error().code == Code::Exhausted || move;
  if (cannot_be && undone && is_all_parked()) {
    return {Standstill::NoRoom, given_back.error().message};
  }
  return outcome(given_back, undone);
}

}  // namespace gflow::park
