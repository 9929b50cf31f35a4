// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>

#include "base/time.h"
#include "runner/core.h"
#include "runner/processes.h"

/// Launches of which nothing is heard: a supervisor that somebody stopped, or that the machine does
/// not let run, is not waited for until somebody looks.
namespace gflow::runner {
namespace {

using Clock = ExpectedEnd::Clock;

/// How long one that is not stopped may take to claim its attempt, on a slow disk. After that it is
/// killed, and the job is started anew.
constexpr std::chrono::minutes kSlowest{2};

ProcessFacts facts_of(int pid) {
  return os::process_facts(pid).value_or(ProcessFacts{.pid = pid, .state = '?'});
}

std::string state_text(char state) {
  if (state == 'T') return "is stopped (T)";
  if (state == 't') return "is stopped by a debugger (t)";
  return fmt::format("does not go on (state {})", state);
}

}  // namespace

void Runner::Core::await_start(Watched& watched) {
  watched.launched = Clock::now();
  look_at(watched, LookFor::Start, watched.launched + options.launch_patience);
  watched.expected.set_run_time(Clock::duration(0), watched.launched);
  expect_end(watched);
}

/// Its supervisor counts from when it has claimed the attempt, which on a slow machine comes long
/// after the launch; but a job may hold it before it says so.
void Runner::Core::count_from_start(Watched& watched) {
  const Time now = Clock::now();
  const auto since = now - watched.launched;
  watched.expected.set_run_time(since - std::min<Clock::duration>(since, kSlowest), now);
  expect_end(watched);
}

void Runner::Core::look_at_launch(Watched& watched, Time now) {
  if (watched.started) return;
  look_at(watched, LookFor::Start, now + options.launch_patience);
  const auto since = now - watched.launched;
  const ProcessFacts its = facts_of(watched.shim_pid);
  const std::string who = fmt::format("its supervisor (pid {})", watched.shim_pid);
  const auto trouble = [&](std::string text) {
    watched.launch_trouble = std::move(text);
    doubt(watched, watched.launch_trouble);
  };
  if (!watched.launch_revoked.empty()) {
    return trouble(fmt::format("{} was killed and {}", who, state_text(its.state)));
  }
  auto claim = watched.files.claim();
  if (claim && !*claim && (its.is_stopped() || since >= kSlowest)) {
    // From here on it cannot take the job any more, whatever it does.
    if (const auto revoked = watched.files.revoke(); !revoked) {
      return trouble(fmt::format("{} {}: {}", who, state_text(its.state), revoked.error().message));
    }
    claim = watched.files.claim();
  }
  if (!claim || !*claim) return;
  const auto passed = std::chrono::duration_cast<std::chrono::seconds>(since);
  const auto start_anew = [&] {
    watched.launch_revoked = fmt::format("{} {}, and the job was not started after {}",
                                         who,
                                         state_text(its.state),
                                         duration_text(passed));
    send_to_supervisor(watched, SIGKILL);
  };
  if (std::holds_alternative<attempt::Revoked>(**claim)) return start_anew();
  if (!its.is_stopped()) return;  // it sets itself a limit
  // What it began goes on; its child may be running the program already.
  const bool told = !watched.launch_trouble.empty();
  const auto ran = watched.files.may_have_run();
  if (told && ran && !*ran) return start_anew();
  send_to_supervisor(watched, SIGCONT);
  trouble(fmt::format("{} {}", who, state_text(its.state)));
}

}  // namespace gflow::runner
