// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <algorithm>
#include <chrono>

#include "base/kept_sentence.h"
#include "runner/core.h"
#include "runner/outcome.h"
#include "runner/processes.h"

/// Attempts that should be over, or whose first process is: a job can stop its supervisor, which
/// holds its time limit and its grace, where both are of the same user. One that is stopped is made
/// to go on; one that is stopped again and again is killed, and the job with it. A job can tell its
/// supervisor in the daemon's name that there is no limit, too, so one that is not stopped is told
/// to end its job as well, and killed with it where that runs on long after its grace.
namespace gflow::runner {
namespace {

using Clock = ExpectedEnd::Clock;

bool is_stopped(const Watched& watched) {
  const auto facts = os::process_facts(watched.shim_pid);
  return facts && facts->is_stopped();
}

/// What ends already or waits in the kernel is not ended by killing it once more; its supervisor,
/// which waits for it, has the record of how it ended. No reason to kill where that is not known.
bool has_some_to_kill(const Watched& watched) {
  const auto in_kernel = [](const ProcessFacts& its) { return its.exiting || its.state == 'D'; };
  const auto supervisor = os::find_process(watched.shim_pid);
  const auto left = processes_below(watched.shim_pid);
  if (!supervisor || !*supervisor || !left || in_kernel(**supervisor)) return false;
  return left->empty() || !std::ranges::all_of(*left, in_kernel);
}

}  // namespace

void Runner::Core::change_limit(Key key,
                                std::optional<std::chrono::seconds> limit,
                                std::chrono::milliseconds ran) {
  const auto found = attempts.find(key);
  if (found == attempts.end()) return;
  found->second.expected.set_run_time(ran, Clock::now());
  send(found->second, attempt::SetLimit{limit});
}

/// What the supervisor is told.
void Runner::Core::follow(Watched& watched, const attempt::Control& control) {
  const Time now = Clock::now();
  if (std::holds_alternative<attempt::SuspendJob>(control)) expect_suspension(watched, now);
  watched.expected.obey(control, now);
  const bool stops = std::holds_alternative<attempt::StopJob>(control);
  if (stops || std::holds_alternative<attempt::ResumeJob>(control)) {
    look_at(watched, LookFor::Suspension, std::nullopt);
  }
  if (stops) watched.parking.trouble.clear();
  if (!stops) return expect_end(watched);
  const Time soon = now + options.end_patience;
  const auto& its = watched.looks.at(static_cast<std::size_t>(LookFor::End)).at;
  look_at(watched, LookFor::End, std::min(its.value_or(soon), soon));
}

/// After whatever changes when it should be over.
void Runner::Core::expect_end(Watched& watched) {
  if (watched.expected.told()) return;  // when it is looked at next is set already
  const auto limit_at = watched.expected.limit_at();
  if (!limit_at) return look_at(watched, LookFor::End, std::nullopt);
  begin_looking(watched, LookFor::End, *limit_at);
}

void Runner::Core::look_at_end(Watched& watched, Time now) {
  if (is_stopped(watched)) return end_stopped(watched, now);
  const auto& told = watched.expected.told();
  if (told) return end_silent(watched, *told, now);
  // Its time limit does not run before that is heard, and there is a limit to how long it takes.
  if (!watched.started) return go_on_looking(watched, LookFor::End, now);
  // To one that ends its job already this is nothing new (shim::Supervisor::obey).
  send(watched, attempt::StopJob{SIGTERM, attempt::Ending::TimeLimit});
}

/// What was told and is not stopped knows better how its job has to end: its processes may take
/// long to, or the kernel does not let them. But a job can keep it busy as well.
void Runner::Core::end_silent(Watched& watched, const ExpectedEnd::Told& told, Time now) {
  go_on_looking(watched, LookFor::End, std::max(told.kill_by, now));
  if (now < told.kill_by + options.kill_patience || !has_some_to_kill(watched)) return;
  kill_with_supervisor(watched, {end_reason_of(told.reason), kept<Kept::RanPastGrace>()});
}

void Runner::Core::end_stopped(Watched& watched, Time now) {
  const auto& told = watched.expected.told();
  if (!told && !watched.started && !watched.files.may_have_run().value_or(false)) {
    // It is looked after as a launch, and its time limit does not run yet.
    return look_at(watched, LookFor::End, now + options.launch_patience);
  }
  begin_looking(watched, LookFor::End, now);
  if (!told) return send(watched, attempt::StopJob{SIGTERM, attempt::Ending::TimeLimit});
  if (now < told->kill_by) return send_to_supervisor(watched, SIGCONT);  // it was told already
  if (!watched.told_to_kill) {
    watched.told_to_kill = true;
    return send(watched, attempt::StopJob{SIGKILL, told->reason});
  }
  kill_with_supervisor(watched, {end_reason_of(told->reason), kept<Kept::SupervisorStopped>()});
}

/// Whose end its supervisor has to take note of, and cannot while it is stopped. Not at once: most
/// of the jobs that come in numbers are over before that.
void Runner::Core::expect_first_process(Watched& watched, int pid) {
  if (watched.first_pid > 0) return;
  watched.first_pid = pid;
  begin_looking(watched, LookFor::Remains, Clock::now());
}

/// Only that there is no such process is its end: whatever cannot be found out is looked at again.
void Runner::Core::watch_first_process(Watched& watched) {
  const Time now = Clock::now();
  // The daemon before this one may have ended before its program was started.
  if (watched.first_pid <= 0) watched.first_pid = watched.files.started_pid().value_or(0);
  const int pid = watched.first_pid;
  if (pid <= 0) return go_on_looking(watched, LookFor::Remains, now);
  auto process = open_to_watch(pid);
  if (!process) return begin_looking(watched, LookFor::Remains, now);
  if (!process->valid()) return first_process_ended(watched);
  const auto facts = os::find_process(pid);
  if (!facts) return begin_looking(watched, LookFor::Remains, now);
  // One that is no child of the supervisor is another that has its pid by now.
  if (!*facts || (*facts)->parent != watched.shim_pid) return first_process_ended(watched);
  if (has_ended(*process)) return first_process_ended(watched);
  // More jobs were taken over than could be started: these are looked at in turn.
  if (!have_share()) return begin_looking(watched, LookFor::Remains, now);
  watched.first_process = std::move(*process);
  if (listen(watched, Source::FirstProcess, watched.first_process)) return;
  watched.first_process.reset();
  begin_looking(watched, LookFor::Remains, now);
}

void Runner::Core::first_process_ended(Watched& watched) {
  watched.first_process.reset();
  watched.first_ended = Clock::now();
  begin_looking(watched, LookFor::Remains, *watched.first_ended);
}

/// Its supervisor ends what is left of the job, writes down how it ended, and ends. One that is
/// stopped is made to go on; if it is stopped once more though nobody of the job is left to do it,
/// or when the others have had their grace, nobody will know how it ended.
void Runner::Core::look_at_remains(Watched& watched, Time now) {
  if (!watched.first_ended) return watch_first_process(watched);
  if (!is_stopped(watched)) return go_on_looking(watched, LookFor::Remains, now);
  begin_looking(watched, LookFor::Remains, now);
  const auto left = processes_below(watched.shim_pid);
  const bool over =
      (left && left->empty()) || now >= *watched.first_ended + watched.expected.grace();
  if (watched.told_to_go_on && over) {
    return kill_with_supervisor(watched, {EndReason::SupervisorDied, kept<Kept::SupervisorHeld>()});
  }
  watched.told_to_go_on = true;
  send_to_supervisor(watched, SIGCONT);
}

Outcome Runner::Core::ended_with_supervisor(const Watched& watched, const KilledFor& why) {
  Outcome outcome = outcome_without_record(why.reason, why.message);
  outcome.signal = SIGKILL;
  outcome.run_time = std::chrono::duration_cast<std::chrono::milliseconds>(
      watched.expected.run_time(Clock::now()));
  return outcome;
}

}  // namespace gflow::runner
