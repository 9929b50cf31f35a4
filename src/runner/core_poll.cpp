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

#include "base/kept_sentence.h"
#include "base/proc_text.h"
#include "base/text.h"
#include "os/file.h"
#include "runner/core.h"
#include "runner/outcome.h"
#include "runner/processes.h"
#include "runner/spawn.h"

namespace gflow::runner {
namespace {

constexpr std::uint64_t kSources = 7;

bool send_signal(const os::Fd& process, attempt::ControlSignal signal) {
  siginfo_t info{};
  info.si_signo = signal.number;
  info.si_code = SI_QUEUE;
  info.si_pid = ::getpid();
  info.si_uid = ::getuid();
  info.si_value.sival_int = signal.value;
  if (::syscall(SYS_pidfd_send_signal, process.get(), signal.number, &info, 0) != 0) return false;
  // A supervisor that somebody stopped, as its own job can, is to hear it.
  (void)::syscall(SYS_pidfd_send_signal, process.get(), SIGCONT, nullptr, 0);
  return true;
}

Result<bool> is_populated(const os::Fd& events) {
  if (!events.valid()) return false;
  std::array<char, 256> buffer{};
  const ssize_t got = ::pread(events.get(), buffer.data(), buffer.size(), 0);
  if (got < 0 && errno == ENODEV) return false;  // the group is gone, and with it its processes
  if (got < 0) return os::errno_error("read cgroup.events");
  const std::string_view text(buffer.data(), static_cast<std::size_t>(got));
  return keyed_value(text, "populated").value_or(0) != 0;
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
  drain(retry);
  look_at_due();
  send_unsent();
  resolve_doubts();
  reap_abandoned();
  take_probe();
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
  if (source == Source::FirstProcess) return first_process_ended(watched);
  if (source == Source::Parking) return park_ended(watched);
  if (source == Source::Wanted) return wanted(watched);
  std::erase_if(watched.survivors, [](const os::Fd& process) {
    const bool ended = has_ended(process);
    if (ended) (void)reap(process);  // an orphan of the shim is a child of ours
    return ended;
  });
  if (watched.survivors.empty()) conclude(watched);  // looks again: one may have made another
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
    watched.started = true;
    watched.launch_trouble.clear();
    look_at(watched, LookFor::Start, std::nullopt);
    count_from_start(watched);
    expect_first_process(watched, started->pid);
    reports.emplace_back(Started{
        watched.job, watched.attempt, started->pid, watched.files.watches(), watched.isolation});
  } else {
    const auto& failed = std::get<attempt::ShimFailed>(*said);
    watched.shim_said = Error{Code::Failure, printable(failed.message), failed.error};
  }
}

void Runner::Core::watch_shim(Watched& watched) {
  if (!watched.shim.valid()) {
    auto process = open_to_watch(watched.shim_pid);
    if (!process) return doubt(watched, process.error().message);
    watched.shim = std::move(*process);
    if (!watched.shim.valid()) return shim_ended(watched);
  }
  const auto is_heard = [&](Source source, const os::Fd& fd) {
    return !fd.valid() || listen(watched, source, fd) || errno == EEXIST;
  };
  if (is_heard(Source::Status, watched.status) && is_heard(Source::Shim, watched.shim)) return;
  const int number = errno;
  if (has_ended(watched.shim)) return shim_ended(watched);
  errno = number;
  doubt(watched, os::errno_error("watch the supervisor").error().message);
}

void Runner::Core::shim_ended(Watched& watched) {
  read_status(watched);
  watched.killed_by = reap(watched.shim);
  watched.shim.reset();
  watched.first_process.reset();
  by_shim.erase(std::exchange(watched.shim_pid, 0));
  conclude(watched);
}

/// Its shim is no more: what became of the attempt? If that cannot be read now, it is asked again.
void Runner::Core::conclude(Watched& watched) {
  auto found = verdict(watched);
  if (!found) return doubt(watched, found.error().message);
  doubtful.erase({watched.job, watched.attempt});
  if (*found) end(watched, std::move(**found));
}

/// Empty while processes of it are still ending.
Result<std::optional<Outcome>> Runner::Core::verdict(Watched& watched) {
  if (const auto record = GF_TRY(watched.files.exit_record())) {
    const auto its = made.find({watched.job, watched.attempt});
    if (its != made.end()) its->second.has_record = true;
    return outcome_of(*record);
  }
  const bool exists = GF_TRY(watched.files.exist());
  if (exists && !GF_TRY(watched.files.claim())) {
    GF_CHECK(watched.files.revoke());  // nobody is left to claim it
  }
  const auto claim = GF_TRY(watched.files.claim());
  const bool claimed = claim && std::holds_alternative<attempt::ShimClaim>(*claim);
  if ((watched.started || claimed) && GF_TRY(kill_survivors(watched))) return std::nullopt;
  if (exists ? GF_TRY(watched.files.may_have_run()) : watched.started) {
    if (watched.killed_for) return ended_with_supervisor(watched, *watched.killed_for);
    return outcome_without_record(
        EndReason::SupervisorDied,
        exists ? kept<Kept::SupervisorKilled>() : kept<Kept::DirectoryRemoved>());
  }
  return never_ran(watched);
}

Outcome Runner::Core::never_ran(const Watched& watched) {
  constexpr const char* kStep = "start the supervisor";
  if (watched.revoked) return outcome_without_record(watched.revoked->reason, {});
  if (!watched.launch_revoked.empty()) {
    return not_launched(
        FailureKind::Passing, kStep, Error{Code::Timeout, watched.launch_revoked, EINTR});
  }
  if (watched.shim_said) {
    Error said = *watched.shim_said;
    said.message = kept<Kept::SupervisorSaid>(said.message);
    return not_launched(FailureKind::Node, kStep, said);
  }
  if (watched.killed_by != 0) {
    return not_launched(
        FailureKind::Passing,
        kStep,
        Error{Code::Failure, kept<Kept::SupervisorKilledBefore>(watched.killed_by), EINTR});
  }
  return not_launched(
      FailureKind::Unknown, kStep, Error{Code::Failure, kept<Kept::SupervisorEndedBefore>()});
}

/// True if there are any; then their end is waited for.
Result<bool> Runner::Core::kill_survivors(Watched& watched) {
  watched.survivors.clear();
  watched.events.reset();
  if (!watched.kill_cgroup.empty()) {
    if (auto kill = os::open_file(watched.kill_cgroup + "/cgroup.kill", O_WRONLY)) {
      (void)os::write_all(kill->get(), "1");  // each is signalled below, too
    }
    auto events = os::open_file(watched.kill_cgroup + "/cgroup.events", O_RDONLY);
    if (events) watched.events = std::move(*events);
    if (!events && events.error().code != Code::NotFound) return std::unexpected(events.error());
  }
  watched.survivors = GF_TRY(survivors_of(watched.traces));
  for (const os::Fd& process : watched.survivors) {
    (void)send_signal(process, {SIGKILL, 0});  // one that may not be killed is waited for
    if (!listen(watched, Source::Survivor, process)) return os::errno_error("watch what is left");
  }
  // Listening before looking: a change in between is then seen by one of the two.
  if (watched.events.valid() && !listen(watched, Source::Events, watched.events)) {
    return os::errno_error("watch cgroup.events");
  }
  return GF_TRY(is_populated(watched.events)) || !watched.survivors.empty();
}

void Runner::Core::doubt(Watched& watched, std::string why) {
  watched.doubt = std::move(why);
  doubtful.insert({watched.job, watched.attempt});
  retry_soon();
}

void Runner::Core::retry_soon() const {
  itimerspec soon{};
  soon.it_value.tv_sec = 1;
  (void)::timerfd_settime(retry.get(), 0, &soon, nullptr);  // arguments are valid
}

void Runner::Core::resolve_doubts() {
  for (const Key& key : std::exchange(doubtful, {})) {
    if (const auto found = attempts.find(key); found != attempts.end()) look_again(found->second);
  }
}

void Runner::Core::look_again(Watched& watched) {
  if (watched.shim_pid > 0 && !watched.launch_trouble.empty())
    doubt(watched, watched.launch_trouble);
  if (watched.shim_pid > 0 && !watched.parking.trouble.empty())
    doubt(watched, watched.parking.trouble);
  if (!watched.adopting) return watched.shim_pid > 0 ? watch_shim(watched) : conclude(watched);
  const Key key(watched.job, watched.attempt);
  const Adopting known = *watched.adopting;
  Adoption adoption = adopt(key, known);
  if (std::holds_alternative<Unknown>(adoption)) return;
  report(Adopted{key.first, key.second, std::move(adoption)});
}

void Runner::Core::stop(Key key, int signal, EndReason reason) {
  const auto found = attempts.find(key);
  if (found == attempts.end() || found->second.shim_pid == 0) return;
  Watched& watched = found->second;
  if (const auto claim = watched.files.claim(); claim && !*claim) {
    (void)watched.files.revoke();  // if it cannot be, it is signalled
  }
  const auto claim = watched.files.claim();
  if (claim && *claim && std::holds_alternative<attempt::Revoked>(**claim)) {
    if (!watched.revoked) watched.revoked = RevokedFor{reason};
    return;
  }
  const bool valid = signal > 0 && signal <= 64;
  send(watched, attempt::StopJob{valid ? signal : SIGTERM, ending_for(reason)});
}

void Runner::Core::send(Watched& watched, const attempt::Control& control) {
  if (watched.shim_pid == 0) return;
  follow(watched, control);
  queue(watched, attempt::encode_control(control));
  // The kernel's queue is one for all processes of a user: a job can keep it full. This needs no
  // place in it, and the supervisor ends the job by it, if not for this reason. Once: it would be
  // told to the job each time.
  const bool waits = !watched.unsent.empty();
  if (waits && std::holds_alternative<attempt::StopJob>(control)) {
    send_to_supervisor(watched, SIGTERM);
  }
}

void Runner::Core::tell(Key key, const attempt::Control& control) {
  const auto found = attempts.find(key);
  if (found != attempts.end()) send(found->second, control);
}

void Runner::Core::queue(Watched& watched, attempt::ControlSignal signal) {
  const bool in_order = watched.unsent.empty();
  if (in_order && watched.shim.valid() && (send_signal(watched.shim, signal) || errno == ESRCH)) {
    return;
  }
  watched.unsent.push_back(signal);
  retry_soon();
}

void Runner::Core::send_unsent() {
  for (auto& [key, watched] : attempts) {
    if (watched.unsent.empty()) continue;
    for (const attempt::ControlSignal signal : std::exchange(watched.unsent, {})) {
      if (watched.shim_pid > 0) queue(watched, signal);
    }
  }
}

}  // namespace gflow::runner
