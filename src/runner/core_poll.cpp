// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "attempt/proc_text.h"
#include "base/text.h"
#include "os/file.h"
#include "runner/core.h"
#include "runner/outcome.h"
#include "runner/processes.h"
#include "runner/spawn.h"

namespace gflow::runner {
namespace {

constexpr std::uint64_t kSources = 4;

bool send_signal(const os::Fd& process, attempt::ControlSignal signal) {
  siginfo_t info{};
  info.si_signo = signal.number;
  info.si_code = SI_QUEUE;
  info.si_pid = ::getpid();
  info.si_uid = ::getuid();
  info.si_value.sival_int = signal.value;
  return ::syscall(SYS_pidfd_send_signal, process.get(), signal.number, &info, 0) == 0;
}

bool is_populated(const os::Fd& events) {
  if (!events.valid()) return false;
  std::array<char, 256> buffer{};
  const ssize_t got = ::pread(events.get(), buffer.data(), buffer.size(), 0);
  if (got < 0) return false;  // the group is gone, and with it its processes
  const std::string_view text(buffer.data(), static_cast<std::size_t>(got));
  return attempt::keyed_value(text, "populated").value_or(0) != 0;
}

void drain(const os::Fd& counter) {
  std::uint64_t count = 0;
  (void)!::read(counter.get(), &count, sizeof count);
}

}  // namespace

bool Runner::Core::listen(const Watched& watched, Source source, const os::Fd& fd) const {
  epoll_event event{};
  event.events = source == Source::Events ? EPOLLPRI : EPOLLIN;
  event.data.u64 = watched.serial * kSources + static_cast<std::uint64_t>(source);
  return ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd.get(), &event) == 0;
}

std::vector<Report> Runner::Core::poll() {
  drain(wake);
  drain(resend);
  send_unsent();
  std::array<epoll_event, 64> events{};
  while (true) {
    const int count = ::epoll_wait(epoll.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) {
      const std::uint64_t data = events.at(static_cast<std::size_t>(i)).data.u64;
      const auto key = by_serial.find(data / kSources);
      if (key == by_serial.end()) continue;  // it ended earlier in this very loop
      ready(attempts.at(key->second), static_cast<Source>(data % kSources));
    }
    if (count < static_cast<int>(events.size())) break;
  }
  drain(wake);
  return std::exchange(reports, {});
}

void Runner::Core::ready(Watched& watched, Source source) {
  if (source == Source::Status) return read_status(watched);
  if (source == Source::Shim) return shim_ended(watched);
  std::erase_if(watched.survivors, has_ended);
  if (!watched.survivors.empty() || is_populated(watched.events)) return;
  conclude(watched);  // looks again: a process may have been made while the others were killed
}

void Runner::Core::read_status(Watched& watched) {
  std::array<char, 4096> buffer{};
  while (watched.status.valid()) {
    const ssize_t got = ::read(watched.status.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      watched.status.reset();
      return;
    }
    watched.status_text.append(buffer.data(), static_cast<std::size_t>(got));
    for (std::size_t end = 0; (end = watched.status_text.find('\n')) != std::string::npos;) {
      heard(watched, watched.status_text.substr(0, end));
      watched.status_text.erase(0, end + 1);
    }
  }
}

void Runner::Core::heard(Watched& watched, std::string_view line) {
  const auto said = attempt::decode_status(line);
  if (!said) return;
  if (const auto* started = std::get_if<attempt::ShimStarted>(&*said)) {
    reports.emplace_back(Started{watched.job, watched.attempt, started->pid});
  } else {
    watched.shim_said = printable(std::get<attempt::ShimFailed>(*said).message);
  }
}

void Runner::Core::shim_ended(Watched& watched) {
  read_status(watched);
  reap(watched.shim);
  watched.shim.reset();
  by_shim.erase(watched.shim_pid);
  conclude(watched);
}

/// Its shim is no more: what became of the attempt?
void Runner::Core::conclude(Watched& watched) {
  if (const auto record = watched.files.exit_record()) return end(watched, outcome_of(*record));
  if (!watched.files.claim()) (void)watched.files.revoke();  // nobody is left to claim it
  const auto claim = watched.files.claim();
  if (claim && std::holds_alternative<attempt::ShimClaim>(*claim)) {
    if (kill_survivors(watched)) return;
    return end(watched,
               outcome_without_record(EndReason::SupervisorDied,
                                      "its supervisor was killed; how the job ended is not known"));
  }
  if (watched.revoked) return end(watched, outcome_without_record(watched.revoked->reason, {}));
  const std::string why = watched.shim_said.empty() ? "its supervisor ended before it took the job"
                                                    : "its supervisor: " + watched.shim_said;
  end(watched, outcome_without_record(EndReason::LaunchFailed, why));
}

/// True if there are any; then their end is waited for.
bool Runner::Core::kill_survivors(Watched& watched) {
  const auto order = watched.files.order();
  watched.survivors.clear();
  watched.events.reset();
  if (!order) return false;
  if (!order->kill_cgroup.empty()) {
    if (auto kill = os::open_file(order->kill_cgroup + "/cgroup.kill", O_WRONLY)) {
      (void)os::write_all(kill->get(), "1");
    }
    if (auto events = os::open_file(order->kill_cgroup + "/cgroup.events", O_RDONLY)) {
      watched.events = std::move(*events);
    }
  }
  watched.survivors = survivors_of(*order);
  for (const os::Fd& process : watched.survivors) {
    (void)send_signal(process, {SIGKILL, 0});  // one that may not be killed is waited for
    (void)listen(watched, Source::Survivor, process);
  }
  // Listening before looking: a change in between is then seen by one of the two.
  if (watched.events.valid()) (void)listen(watched, Source::Events, watched.events);
  return is_populated(watched.events) || !watched.survivors.empty();
}

void Runner::Core::stop(Key key, int signal, EndReason reason) {
  const auto found = attempts.find(key);
  if (found == attempts.end() || !found->second.shim.valid()) return;
  Watched& watched = found->second;
  if (!watched.files.claim()) (void)watched.files.revoke();  // if it cannot be, it is signalled
  const auto claim = watched.files.claim();
  if (claim && std::holds_alternative<attempt::Revoked>(*claim)) {
    if (!watched.revoked) watched.revoked = RevokedFor{reason};
    return;
  }
  const bool valid = signal > 0 && signal <= 64;
  send(watched, attempt::StopJob{valid ? signal : SIGTERM, ending_for(reason)});
}

void Runner::Core::send(Watched& watched, const attempt::Control& control) {
  if (watched.shim.valid()) queue(watched, attempt::encode_control(control));
}

void Runner::Core::tell(Key key, const attempt::Control& control) {
  const auto found = attempts.find(key);
  if (found != attempts.end()) send(found->second, control);
}

void Runner::Core::queue(Watched& watched, attempt::ControlSignal signal) {
  const bool in_order = watched.unsent.empty();
  if (in_order && (send_signal(watched.shim, signal) || errno != EAGAIN)) return;
  watched.unsent.push_back(signal);
  itimerspec soon{};
  soon.it_value.tv_sec = 1;
  (void)::timerfd_settime(resend.get(), 0, &soon, nullptr);  // arguments are valid
}

void Runner::Core::send_unsent() {
  for (auto& [key, watched] : attempts) {
    if (watched.unsent.empty()) continue;
    for (const attempt::ControlSignal signal : std::exchange(watched.unsent, {})) {
      if (watched.shim.valid()) queue(watched, signal);
    }
  }
}

}  // namespace gflow::runner
