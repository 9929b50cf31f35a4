// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <chrono>

#include "base/time.h"
#include "runner/core.h"
#include "runner/processes.h"

/// Launches of which nothing is heard: a supervisor that somebody stopped, or that the machine does
/// not let run, is not waited for until somebody looks.
namespace gflow::runner {
namespace {

using Clock = std::chrono::steady_clock;

/// How long one that is not stopped may take to claim its attempt, on a slow disk. After that it is
/// killed, and the job is started anew.
constexpr std::chrono::minutes kSlowest{2};

void send_to(const Watched& watched, int signal) {
  // By its pidfd where there is one. Else it is our child, not waited for: nobody else's pid.
  const bool sent = watched.shim.valid() &&
                    ::syscall(SYS_pidfd_send_signal, watched.shim.get(), signal, nullptr, 0) == 0;
  if (!sent) (void)::kill(watched.shim_pid, signal);
}

char state_of(int pid) {
  const auto facts = process_facts(pid);
  return facts ? facts->state : '?';
}

bool is_stopped(char state) { return state == 'T' || state == 't'; }

std::string state_text(char state) {
  if (state == 'T') return "is stopped (T)";
  if (state == 't') return "is stopped by a debugger (t)";
  return fmt::format("does not go on (state {})", state);
}

}  // namespace

void Runner::Core::await_start(Watched& watched) {
  watched.launched = Clock::now();
  unconfirmed.push_back(
      {watched.launched + options.launch_patience, {watched.job, watched.attempt}});
  look_later();
}

/// One timer for all: they are due in the order in which they were launched.
void Runner::Core::look_later() {
  if (patience_runs || unconfirmed.empty()) return;
  const auto at = unconfirmed.front().at.time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at);
  itimerspec when{};
  when.it_value.tv_sec = seconds.count();
  when.it_value.tv_nsec = std::chrono::nanoseconds(at - seconds).count();
  (void)::timerfd_settime(patience.get(), TFD_TIMER_ABSTIME, &when, nullptr);  // they are valid
  patience_runs = true;
}

void Runner::Core::look_at_launches() {
  std::uint64_t expirations = 0;
  if (::read(patience.get(), &expirations, sizeof expirations) > 0) patience_runs = false;
  const Clock::time_point now = Clock::now();
  while (!unconfirmed.empty()) {
    const auto [at, key] = unconfirmed.front();
    const auto found = attempts.find(key);
    const bool waits =
        found != attempts.end() && !found->second.started && found->second.shim_pid > 0;
    if (waits && at > now) break;
    unconfirmed.pop_front();
    if (!waits) continue;
    look_at_launch(found->second, now - found->second.launched);
    unconfirmed.push_back({now + options.launch_patience, key});
  }
  look_later();
}

void Runner::Core::look_at_launch(Watched& watched, std::chrono::nanoseconds since) {
  const char state = state_of(watched.shim_pid);
  const std::string who = fmt::format("its supervisor (pid {})", watched.shim_pid);
  const auto trouble = [&](std::string text) {
    watched.launch_trouble = std::move(text);
    doubt(watched, watched.launch_trouble);
  };
  if (!watched.launch_revoked.empty()) {
    return trouble(fmt::format("{} was killed and {}", who, state_text(state)));
  }
  auto claim = watched.files.claim();
  if (claim && !*claim && (is_stopped(state) || since >= kSlowest)) {
    // From here on it cannot take the job any more, whatever it does.
    if (const auto revoked = watched.files.revoke(); !revoked) {
      return trouble(fmt::format("{} {}: {}", who, state_text(state), revoked.error().message));
    }
    claim = watched.files.claim();
  }
  if (!claim || !*claim) return;
  const auto passed = std::chrono::duration_cast<std::chrono::seconds>(since);
  const auto start_anew = [&] {
    watched.launch_revoked = fmt::format("{} {}, and the job was not started after {}",
                                         who,
                                         state_text(state),
                                         duration_text(passed));
    send_to(watched, SIGKILL);
  };
  if (std::holds_alternative<attempt::Revoked>(**claim)) return start_anew();
  if (!is_stopped(state)) return;  // it sets itself a limit
  // What it began goes on; its child may be running the program already.
  const bool told = !watched.launch_trouble.empty();
  const auto ran = watched.files.may_have_run();
  if (told && ran && !*ran) return start_anew();
  send_to(watched, SIGCONT);
  trouble(fmt::format("{} {}", who, state_text(state)));
}

}  // namespace gflow::runner
