// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "runner/core.h"

/// Attempts whose supervisors are silent are looked at, each for what it should have done by then.
namespace gflow::runner {
namespace {

using Clock = ExpectedEnd::Clock;

/// At most so long until one is looked at again that gets along by itself.
constexpr std::chrono::milliseconds kLongestPause = std::chrono::minutes(1);

}  // namespace

/// Not at all any more, if that is empty.
void Runner::Core::look_at(Watched& watched, LookFor what, std::optional<Time> at) {
  auto& its = watched.looks.at(static_cast<std::size_t>(what)).at;
  if (its == at) return;
  const Key key(watched.job, watched.attempt);
  if (its) looks.erase({*its, key, what});
  its = at;
  if (at) looks.emplace(*at, key, what);
  set_patience();
}

void Runner::Core::begin_looking(Watched& watched, LookFor what, Time from) {
  watched.looks.at(static_cast<std::size_t>(what)).pause = options.end_patience;
  look_at(watched, what, from + options.end_patience);
}

/// The later the longer it has gone well.
void Runner::Core::go_on_looking(Watched& watched, LookFor what, Time from) {
  auto& pause = watched.looks.at(static_cast<std::size_t>(what)).pause;
  pause = std::max(pause, options.end_patience);
  look_at(watched, what, from + pause);
  pause = std::min(2 * pause, kLongestPause);
}

/// One timer for all, at the first of them; it may come too early when that one has gone.
void Runner::Core::set_patience() {
  if (looks.empty()) return;
  const Time first = std::get<Time>(*looks.begin());
  if (patience_until && *patience_until <= first) return;
  const auto at = std::max(first.time_since_epoch(), Clock::duration(1));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at);
  itimerspec when{};
  when.it_value.tv_sec = seconds.count();
  when.it_value.tv_nsec = std::chrono::nanoseconds(at - seconds).count();
  (void)::timerfd_settime(patience.get(), TFD_TIMER_ABSTIME, &when, nullptr);  // they are valid
  patience_until = first;
}

void Runner::Core::look_at_due() {
  std::uint64_t expirations = 0;
  if (::read(patience.get(), &expirations, sizeof expirations) > 0) patience_until.reset();
  const Time now = Clock::now();
  while (!looks.empty() && std::get<Time>(*looks.begin()) <= now) {
    const auto [at, key, what] = *looks.begin();
    looks.erase(looks.begin());
    const auto found = attempts.find(key);
    if (found == attempts.end()) continue;
    found->second.looks.at(static_cast<std::size_t>(what)).at.reset();
    look(found->second, what, now);
  }
  set_patience();
}

void Runner::Core::look(Watched& watched, LookFor what, Time now) {
  if (watched.shim_pid == 0) return;  // what is left of it is being killed
  switch (what) {
    case LookFor::Start:
      return look_at_launch(watched, now);
    case LookFor::End:
      return look_at_end(watched, now);
    case LookFor::Suspension:
      return look_at_suspension(watched, now);
    case LookFor::Parking:
      return look_at_parking(watched);
    case LookFor::Wanted:
      return watch_lent(watched);
    case LookFor::Remains:
      return look_at_remains(watched, now);
  }
}

void Runner::Core::send_to_supervisor(const Watched& watched, int signal) {
  // By its pidfd where there is one. Else it is our child, not waited for: nobody else's pid.
  if (watched.shim.valid()) {
    (void)::syscall(SYS_pidfd_send_signal, watched.shim.get(), signal, nullptr, 0);
  } else {
    (void)::kill(watched.shim_pid, signal);
  }
}

/// What is left of the job is killed when the supervisor has ended: it could start no more then.
void Runner::Core::kill_with_supervisor(Watched& watched, KilledFor why) {
  watched.killed_for = std::move(why);
  send_to_supervisor(watched, SIGKILL);
}

}  // namespace gflow::runner
