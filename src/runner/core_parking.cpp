// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "base/kept_sentence.h"
#include "base/text.h"
#include "os/child.h"
#include "os/file.h"
#include "os/process.h"
#include "runner/core.h"

/// The GPU memory of attempts that are suspended, which gflow-park takes to host memory and gives
/// back. Where it is, the attempt's files say: a daemon that comes back goes on from there.
namespace gflow::runner {
namespace {

using Clock = ExpectedEnd::Clock;

/// What gflow-park ends with.
constexpr int kDone = 0;
constexpr int kRefused = 1;
constexpr int kLost = 4;
constexpr int kNoRoom = 5;

/// So often in a row it may not be able to tell what became of it, before what was taken is given
/// back.
constexpr int kMostUnclear = 3;

/// So much longer than it may take it is left to end by itself.
constexpr std::chrono::seconds kSlack{10};

/// The exit status of a child that has ended; empty if a signal ended it, or somebody else took
/// note of it.
std::optional<int> exit_status(const os::Child& child) {
  siginfo_t info{};
  const auto id = static_cast<id_t>(child.process.get());
  if (::waitid(P_PIDFD, id, &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0) return std::nullopt;
  if (info.si_code != CLD_EXITED) return std::nullopt;
  return info.si_status;
}

/// What it said of what went wrong, which is one line.
std::string said_by(const os::Child& child) {
  std::array<char, 4096> buffer{};
  const ssize_t got = ::read(child.channel.get(), buffer.data(), buffer.size());
  const std::string_view text(buffer.data(), static_cast<std::size_t>(got > 0 ? got : 0));
  return printable(trim(text.substr(0, text.find('\n'))));
}

/// Whether what is in host memory is given back on another GPU, or that was begun: not where the
/// taking is undone.
bool moves(const ParkingJob& parking, const ParkRecord& record) {
  return record.move || (parking.move && parking.refused.empty());
}

/// Whether that was asked, and not the way back.
bool is_on_its_way(const Watched& watched, const ParkingJob& parking) {
  if (parking.takes || !parking.move) return false;
  const auto record = watched.files.park_record();
  return record && record->move && !record->move->is_back;
}

void kill_child(const os::Child& child) {
  (void)::syscall(SYS_pidfd_send_signal, child.process.get(), SIGKILL, nullptr, 0);
}

}  // namespace

void Runner::Core::suspend(Key key, Memory park) {
  const auto found = attempts.find(key);
  if (found == attempts.end()) return;
  found->second.parking.stands = true;
  stop_listening(found->second);
  found->second.parking.most = park;
  bring_on_parking(found->second);
}

void Runner::Core::resume(Key key) {
  const auto found = attempts.find(key);
  if (found == attempts.end()) return;
  found->second.parking.stands = false;
  bring_on_parking(found->second);
}

/// One that does not give up when its time is over, as it is stopped, is killed: its end is heard.
void Runner::Core::look_at_parking(Watched& watched) {
  if (!watched.parking.child) return bring_on_parking(watched);
  kill_child(*watched.parking.child);
}

/// From where it is to where it should be, a step at a time. One that is being ended has its signal
/// and its grace, wherever its GPU memory is.
void Runner::Core::bring_on_parking(Watched& watched) {
  ParkingJob& parking = watched.parking;
  if (parking.child) return;
  look_at(watched, LookFor::Parking, std::nullopt);
  if (watched.shim_pid == 0 || watched.expected.told()) return;
  const auto record = watched.files.park_record();
  if (!record) return park_again_later(watched, record.error().message);
  if (parking.move || record->move) return bring_on_move(watched, *record);
  const bool is_begun = record->how != Parking::None;
  if (!parking.stands) {
    send(watched, attempt::ResumeJob{});
    if (is_begun) return begin_unpark(watched, *record);
    const auto told = tell_own(watched);
    return told ? park_is_done(watched) : park_again_later(watched, told.error().message);
  }
  if (record->how == Parking::Parked) {
    park_is_done(watched);
    report_parking(watched, {.how = Parking::Parked, .memory = record->taken()});
    if (!parking.lends) return send(watched, attempt::SuspendJob{});
    send(watched, attempt::ResumeJob{});  // it may have been suspended by hand
    return watch_lent(watched);
  }
  if (!parking.refused.empty()) return begin_unpark(watched, *record);
  if (is_begun || parking.most > Memory{}) return begin_park(watched, *record);
  if (parking.lends) return not_parked(watched, "how much it may take was not told");
  send(watched, attempt::SuspendJob{});
}

/// Its own limit is raised by what may be taken: what comes to host memory is charged to it.
void Runner::Core::begin_park(Watched& watched, const ParkRecord& record) {
  ParkingJob& parking = watched.parking;
  if (record.most > Memory{}) parking.most = record.most;
  parking.is_fresh = record.how == Parking::None;
  auto begun = limit_memory(watched, parking.most);
  if (begun && parking.lends) begun = begin_lending(watched);
  if (begun) begun = start_park(watched, true, record);
  if (begun) return;
  // What the machine lacks now it may have before long, and says nothing of this job.
  const bool is_in_vain = begun.error().code == Code::NotFound || ++parking.unclear >= kMostUnclear;
  // Nothing was started: what was begun for it is not taken for more than that.
  if (parking.is_fresh && !is_in_vain) (void)watched.files.end_parking();
  if (!parking.is_fresh || !is_in_vain) return park_again_later(watched, begun.error().message);
  parking.is_its_own = false;
  not_parked(watched, begun.error().message);
}

void Runner::Core::begin_unpark(Watched& watched, const ParkRecord& record) {
  watched.parking.is_fresh = record.how == Parking::Parked;
  const auto begun = start_park(watched, false, record);
  if (!begun) park_again_later(watched, begun.error().message);
}

Result<void> Runner::Core::start_park(Watched& watched, bool takes, const ParkRecord& record) {
  ParkingJob& parking = watched.parking;
  if (options.park.empty()) return fail(Code::NotFound, "gflow-park is not installed");
  const auto order = GF_TRY(watched.files.order());
  const auto supervisor = os::process_facts(watched.shim_pid);
  if (!supervisor) return fail(Code::NotFound, "its supervisor has ended");
  const os::Fd file = GF_TRY(watched.files.begin_parking(parking.most));
  std::optional<ParkRecord::Move> move;
  if (!takes && moves(parking, record)) {
    move = direction_of(parking, record);
    // How far it came tells the driver; where it is to come to has to be known whoever is killed.
    if (move != record.move) GF_CHECK(os::write_all(file.get(), park_record_line(*move)));
  }
  std::vector<std::string> words = {options.park,
                                    takes ? "park" : "unpark",
                                    std::to_string(watched.shim_pid),
                                    std::to_string(supervisor->start_time),
                                    std::to_string(options.park_patience.count())};
  const auto add = [&words](std::string name, std::string value) {
    words.push_back(std::move(name));
    words.push_back(std::move(value));
  };
  if (order && order->uid) add("--user", std::to_string(*order->uid));
  add("--record", "3");
  if (takes) {
    add("--most", std::to_string(parking.most.bytes));
    if (parking.lends) add("--watched", watched.files.account_path());
  } else if (move) {
    const std::string& onto = move->is_back ? move->from : move->to;
    const std::string& away = move->is_back ? move->to : move->from;
    add("--room", onto + "=" + std::to_string(record.taken().bytes));
    add(move->is_back ? "--back" : "--onto", away + "=" + onto);
  } else {
    for (const auto& [gpu, memory] : record.by_gpu) {
      add("--room", gpu + "=" + std::to_string(memory.bytes));
    }
  }
  if (const auto its = made.find({watched.job, watched.attempt}); its != made.end()) {
    its->second.only_usual_files = false;
  }
  parking.child = GF_TRY(os::start_child({std::move(words), {}, file.get()}));
  parking.takes = takes;
  if (listen(watched, Source::Parking, parking.child->process)) {
    const auto most = options.park_patience;
    look_at(watched, LookFor::Parking, Clock::now() + most + std::min(most, kSlack));
    return {};
  }
  const auto error = os::errno_error("watch gflow-park");
  abandon(parking);
  return error;
}

void Runner::Core::park_ended(Watched& watched) {
  ParkingJob& parking = watched.parking;
  if (!parking.child || !has_ended(parking.child->process)) return;
  const std::optional<int> status = exit_status(*parking.child);
  std::string said = said_by(*parking.child);
  const bool is_said = !said.empty();
  if (!is_said) said = status ? "gflow-park ended without a word" : "gflow-park was killed";
  parking.child.reset();
  if (status == kDone) return parking.takes ? parked(watched) : unparked(watched);
  if (status == kLost) {
    return kill_with_supervisor(watched,
                                {EndReason::SupervisorDied, kept<Kept::GpuMemoryLost>(said)});
  }
  const bool is_going = is_on_its_way(watched, parking);
  if (status == kNoRoom) return is_going ? turn_back(watched, said) : has_no_room(watched, said);
  // As it was before is known only where that was.
  if (status == kRefused && parking.is_fresh && is_said) {
    if (is_going) return turn_back(watched, said);
    return parking.takes ? not_parked(watched, said) : has_no_room(watched, said);
  }
  if ((parking.takes || is_going) && ++parking.unclear >= kMostUnclear) parking.refused = said;
  park_again_later(watched, said);
}

void Runner::Core::parked(Watched& watched) {
  // What was raised for what was not taken is another's; where it cannot be lowered it is too much.
  // Before that is noted, as it is not brought on any more after that.
  if (const auto record = watched.files.park_record()) {
    (void)limit_memory(watched, std::min(record->taken(), watched.parking.most));
  }
  if (const auto noted = watched.files.note_parked(); !noted) {
    return park_again_later(watched, noted.error().message);
  }
  bring_on_parking(watched);
}

/// It runs as it did, and is suspended as it is, or lends nothing.
void Runner::Core::not_parked(Watched& watched, std::string why) {
  watched.parking.refused = std::move(why);
  unparked(watched);
}

void Runner::Core::unparked(Watched& watched) {
  ParkingJob& parking = watched.parking;
  (void)limit_memory(watched, Memory{});  // before that is noted, as in parked()
  if (parking.lends && !parking.refused.empty()) {
    parking.stands = false;  // it runs on as it did
    parking.is_its_own = false;
  }
  if (parking.move) return moved(watched);
  if (!parking.stands) {
    if (const auto told = tell_own(watched); !told) {
      return park_again_later(watched, told.error().message);
    }
  }
  const std::string remembered = parking.is_its_own ? parking.refused : "";
  if (const auto ended = watched.files.end_parking(remembered); !ended) {
    return park_again_later(watched, ended.error().message);
  }
  park_is_done(watched);
  const std::string refused = std::exchange(parking.refused, {});
  parking.is_its_own = true;
  if (!refused.empty()) parking.most = Memory{};
  const bool is_told = !parking.stands || !refused.empty();
  if (is_told) report_parking(watched, {.how = Parking::None, .memory = {}, .refused = refused});
  if (parking.stands) bring_on_parking(watched);
}

/// All of it is parked still: it stands meanwhile, and so does its time limit.
void Runner::Core::has_no_room(Watched& watched, std::string why) {
  if (const auto noted = watched.files.note_parked(); !noted) {
    return park_again_later(watched, noted.error().message);
  }
  if (watched.parking.stands) return bring_on_parking(watched);
  if (!watched.parking.lends) send(watched, attempt::SuspendJob{});
  park_again_later(watched, std::move(why));
}

void Runner::Core::park_again_later(Watched& watched, std::string why) {
  if (watched.expected.told()) return;
  watched.parking.trouble = std::move(why);
  doubt(watched, watched.parking.trouble);
  go_on_looking(watched, LookFor::Parking, Clock::now());
}

void Runner::Core::park_is_done(Watched& watched) {
  watched.parking.unclear = 0;
  const std::string was = std::exchange(watched.parking.trouble, {});
  if (!was.empty()) doubtful.erase({watched.job, watched.attempt});
  watched.looks.at(static_cast<std::size_t>(LookFor::Parking)).pause = {};
}

Result<void> Runner::Core::limit_memory(const Watched& watched, Memory more) const {
  const auto order = GF_TRY(watched.files.order());
  if (!order || order->memory_limit == 0 || order->memory_cgroup.empty()) return {};
  return Cgroups::change_memory_limit(
      order->memory_cgroup, Memory{static_cast<std::int64_t>(order->memory_limit)} + more);
}

void Runner::Core::report_parking(const Watched& watched, ParkedMemory parked) {
  report(Parks{watched.job, watched.attempt, std::move(parked)});
}

/// Of an attempt that is gone, or cannot be watched.
void Runner::Core::abandon(ParkingJob& parking) {
  if (!parking.child) return;
  kill_child(*parking.child);
  (void)::epoll_ctl(epoll.get(), EPOLL_CTL_DEL, parking.child->process.get(), nullptr);
  abandoned.push_back(std::move(*parking.child));
  parking.child.reset();
}

void Runner::Core::reap_abandoned() {
  std::erase_if(abandoned, [](const os::Child& child) { return os::reap(child); });
}

void Runner::Core::begin_probe() {
  if (!options.probes_parking) return;
  if (options.park.empty()) {
    probe_said = "gflow-park is not installed";
    return;
  }
  auto child = os::start_child({{options.park, "probe"}, {}});
  if (!child) {
    probe_said = child.error().message;
    return;
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = 0;  // no attempt's: it only makes fd() readable
  const bool is_heard = ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, child->process.get(), &event) == 0;
  if (is_heard) {
    probe = std::move(*child);
    return;
  }
  probe_said = os::errno_error("watch gflow-park").error().message;
  kill_child(*child);
  abandoned.push_back(std::move(*child));
}

void Runner::Core::take_probe() {
  if (!probe || !has_ended(probe->process)) return;
  can_park = exit_status(*probe) == kDone;
  (can_park ? move_said : probe_said) = said_by(*probe);
  probe.reset();
}

std::string Runner::Core::parking_enforcement() const {
  if (can_park) return std::string(executor::kGpuParked);
  return probe_said.empty() ? "" : "none: " + probe_said;
}

}  // namespace gflow::runner
