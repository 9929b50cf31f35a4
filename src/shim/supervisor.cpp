// SPDX-License-Identifier: Apache-2.0
#include "shim/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/proc_text.h"

namespace gflow::shim {
namespace {

using attempt::Ending;

constexpr std::int64_t kSecond = 1'000'000'000;
/// A working directory on a file server that does not answer must not hold a GPU for ever.
constexpr std::int64_t kLaunchTime = 120 * kSecond;

Fd open_signals() {
  sigset_t set;
  (void)::sigemptyset(&set);
  for (const int number : {SIGCHLD, SIGTERM}) (void)::sigaddset(&set, number);
  for (const int number : attempt::kControlSignals) (void)::sigaddset(&set, number);
  return Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

/// Whether it may be the daemon's word. kill(1) queues no value, which would be taken for an order
/// all the same. Who queues one is believed unless it is the job: it may be any daemon that took
/// the attempt over.
bool is_order(const signalfd_siginfo& info) {
  return info.ssi_code == SI_QUEUE && JobTree::is_outside(static_cast<std::int32_t>(info.ssi_pid));
}

void arm(int timer, std::int64_t at) {
  itimerspec when{};
  when.it_value = {at / kSecond, at % kSecond};
  (void)::timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, nullptr);  // arguments are valid
}

std::int64_t ns_of(std::chrono::seconds duration) { return duration.count() * kSecond; }

std::chrono::milliseconds ms_of(const timeval& time) {
  return std::chrono::milliseconds(time.tv_sec * 1000 + time.tv_usec / 1000);
}

}  // namespace

Outcome<WaitPoints> WaitPoints::open() {
  WaitPoints points{open_signals(),
                    Fd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK))};
  if (!points.signals.valid() || !points.timer.valid()) {
    return errno_trouble("make what to wait with");
  }
  return points;
}

Supervisor::Supervisor(const attempt::Order& order, Payload payload, WaitPoints points)
    : order_(order),
      tree_(order),
      payload_(std::move(payload)),
      points_(std::move(points)),
      started_ns_(monotonic_ns()),
      started_wall_ms_(wall_ms()) {
  if (order.time_limit) limit_ns_ = ns_of(*order.time_limit);
}

attempt::ExitRecord Supervisor::run(const std::function<void(int)>& on_started) {
  on_started_ = on_started;
  reap();
  while (!is_over()) {
    wait_for_something();
    read_exec_result();
    reap();  // before it is told anything: what has ended by itself has ended
    read_signals();
    reap();
    check_deadlines();
  }
  return record();
}

void Supervisor::wait_for_something() {
  arm(points_.timer.get(), next_deadline());
  std::array<pollfd, 4> waits{{{points_.signals.get(), POLLIN, 0},
                               {points_.timer.get(), POLLIN, 0},
                               {payload_.exec_result.get(), POLLIN, 0},
                               {tree_.events_fd(), POLLPRI, 0}}};
  (void)::poll(waits.data(), waits.size(), -1);  // every source is looked at whatever it says
  std::uint64_t expirations = 0;
  (void)!::read(points_.timer.get(), &expirations, sizeof expirations);
  // What is not read stays ready, and poll(2) would never wait again.
  if (waits.back().revents != 0) (void)tree_.cgroup_populated();
}

std::int64_t Supervisor::next_deadline() const {
  std::int64_t next = 0;  // disarms
  for (const auto& at : {limit_at(), exec_by(), kill_at_}) {
    if (at && (next == 0 || *at < next)) next = std::max<std::int64_t>(*at, 1);
  }
  return next;
}

bool Supervisor::is_over() const {
  return main_status_ && !has_children_ && !tree_.cgroup_populated();
}

void Supervisor::read_exec_result() {
  if (!payload_.exec_result.valid()) return;
  pollfd ready{payload_.exec_result.get(), POLLIN, 0};
  if (::poll(&ready, 1, 0) <= 0) return;
  LaunchFailure failure;
  const ssize_t got = ::read(payload_.exec_result.get(), &failure, sizeof failure);
  if (got < 0) return;  // it stays ready, so it is read again
  payload_.exec_result.reset();
  launching_ = false;
  if (got == static_cast<ssize_t>(sizeof failure)) {
    failure.about.back() = '\0';
    failure_ = failure;
  } else if (!has_executed()) {
    never_executed_ = true;
  } else if (!failure_) {
    on_started_(payload_.pid);
  }
}

/// As the kernel has it of a child that is not waited for. Where /proc does not tell, it has.
bool Supervisor::has_executed() const {
  const auto text = read_path("/proc/" + std::to_string(payload_.pid) + "/stat");
  const auto facts = parse_proc_stat(text.value_or(""));
  return !facts || !facts->never_executed;
}

/// Whoever stops it before it is the job stops no job: one that is to stand still is suspended.
void Supervisor::let_reach_program() {
  if (!launching_ || main_status_ || suspended_since_) return;
  siginfo_t stopped{};
  const auto id = static_cast<id_t>(payload_.pid);
  if (::waitid(P_PID, id, &stopped, WSTOPPED | WNOHANG) != 0 || stopped.si_pid == 0) return;
  (void)::kill(payload_.pid, SIGCONT);  // our child, not waited for: nobody else's pid
}

void Supervisor::read_signals() {
  signalfd_siginfo info{};
  while (::read(points_.signals.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const auto number = static_cast<int>(info.ssi_signo);
    if (number == SIGTERM) {
      stop_by_sigterm();
    } else if (const auto control = attempt::decode_control({number, info.ssi_int});
               control && is_order(info)) {
      obey(*control);
    }
  }
}

/// By whoever that is; the daemon does it, too, where its order does not get through.
void Supervisor::stop_by_sigterm() {
  const bool overrules = !stop_reason_ || stop_reason_ == std::optional(Ending::Preempted);
  if (!main_status_ && overrules) {
    stop_message_ = "its supervisor was told to end (SIGTERM)";
    stop_reason_ = Ending::Cancelled;
  }
  begin_stop(SIGTERM);
}

void Supervisor::obey(const attempt::Control& control) {
  if (const auto* limit = std::get_if<attempt::SetLimit>(&control)) {
    limit_ns_.reset();
    if (limit->limit && !is_ending()) limit_ns_ = ns_of(*limit->limit);
    return;
  }
  if (std::holds_alternative<attempt::SuspendJob>(control)) return suspend();
  if (std::holds_alternative<attempt::ResumeJob>(control)) return resume();
  if (const auto* message = std::get_if<attempt::SendSignal>(&control)) {
    return send(message->signal);
  }
  const auto& stop = std::get<attempt::StopJob>(control);
  // Who cancels a job that is making room does not want it to come back. And SIGTERM gives no
  // reason of its own.
  const bool overrules =
      (stop.reason == Ending::Cancelled && stop_reason_ == std::optional(Ending::Preempted)) ||
      !stop_message_.empty();
  // What has ended by itself did not end for this reason; only its remains are hurried on.
  if (!main_status_ && (!stop_reason_ || overrules)) {
    stop_reason_ = stop.reason;
    stop_message_.clear();
  }
  // The daemon counts the time limit as well, and says that it is over in case this did not know. A
  // job that is using its grace is not to take a second SIGTERM for impatience.
  const bool knows = stop.reason == Ending::TimeLimit && (kill_at_ || killing_);
  if (!knows || stop.signal == SIGKILL) begin_stop(stop.signal);
}

bool Supervisor::is_ending() const { return main_status_ || kill_at_ || killing_; }

void Supervisor::send(int signal) {
  if (launching_) return;  // whoever would get it is not the job's program yet
  if (suspended_since_) {
    unsent_.insert(signal);
  } else {
    tree_.send(signal);
  }
}

void Supervisor::suspend() {
  if (is_ending()) return tree_.resume();  // the daemon may have frozen it
  if (!suspended_since_) suspended_since_ = monotonic_ns();
  tree_.suspend();
}

void Supervisor::resume() {
  suspended_before_ns_ = stood_ns();
  suspended_since_.reset();
  tree_.resume();
  for (const int signal : std::exchange(unsent_, {})) tree_.send(signal);
}

std::int64_t Supervisor::stood_ns() const {
  return suspended_before_ns_ + (suspended_since_ ? monotonic_ns() - *suspended_since_ : 0);
}

/// When it will have run so long; never while it is suspended.
std::optional<std::int64_t> Supervisor::after(std::optional<std::int64_t> run_ns) const {
  if (!run_ns || suspended_since_) return std::nullopt;
  return started_ns_ + suspended_before_ns_ + *run_ns;
}

std::optional<std::int64_t> Supervisor::exec_by() const {
  return after(launching_ ? std::optional(kLaunchTime) : std::nullopt);
}

void Supervisor::begin_stop(int signal) {
  limit_ns_.reset();
  if (killing_) return;
  const std::int64_t now = monotonic_ns();
  // Grace is not prolonged by being told again.
  if (!kill_at_) kill_at_ = now + ns_of(order_.grace);
  if (signal == SIGKILL) kill_at_ = now;
  if (signal != SIGKILL) tree_.signal(signal);
  if (signal == SIGTERM) terminated_ = true;
  // What is suspended could not clean up; it finds the signal when it goes on. Nor could what the
  // daemon has frozen, which is told to stop before it is told to be suspended.
  resume();
}

void Supervisor::reap() {
  let_reach_program();
  while (true) {
    siginfo_t ended{};
    const int looked = ::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT);
    if (looked != 0 && errno == EINTR) continue;
    // Every process of the job is below a child of this one, or has become one when its parent
    // ended: no children means no processes.
    if (looked != 0 && errno == ECHILD) has_children_ = false;
    if (looked != 0 || ended.si_pid == 0) break;
    const bool is_main = ended.si_pid == payload_.pid;
    if (is_main) read_exec_result();  // what it wrote before it ended, or that it did not get there
    int status = 0;
    (void)::waitpid(ended.si_pid, &status, 0);  // it has ended, and is nobody else's to wait for
    if (is_main) main_ended(status);
  }
  if (!main_status_ || is_over()) return;
  if (killing_) tree_.kill();
  // Those who got another signal before may take it for a message to the first one alone.
  if (!killing_ && !terminated_) begin_stop(SIGTERM);
}

void Supervisor::main_ended(int status) {
  main_status_ = status;
  limit_ns_.reset();
}

void Supervisor::check_deadlines() {
  const std::int64_t now = monotonic_ns();
  const auto is_due = [now](const std::optional<std::int64_t>& at) { return at && *at <= now; };
  if (is_due(exec_by())) {
    launching_ = false;
    failure_ = LaunchFailure{.step = attempt::Step::StartInTime, .error = ETIMEDOUT};
    begin_stop(SIGKILL);
  }
  if (is_due(limit_at())) {
    stop_reason_ = Ending::TimeLimit;
    begin_stop(SIGTERM);
  }
  if (!is_due(kill_at_)) return;
  kill_at_.reset();
  killing_ = true;
  if (!is_over()) tree_.kill();
}

void Supervisor::launch_failed(attempt::ExitRecord& record, const LaunchFailure& failure) const {
  record.reason = Ending::LaunchFailed;
  record.exit_code = 0;
  record.signal = 0;
  record.step = failure.step;
  record.error = failure.error;
  record.message = failure_text(order_, failure);
}

void Supervisor::say_how_it_ended(attempt::ExitRecord& record) const {
  const int status = main_status_.value_or(0);
  if (WIFEXITED(status)) record.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) record.signal = WTERMSIG(status);
  record.reason = WIFSIGNALED(status) ? Ending::Signalled : Ending::Exited;
  record.oom_kills = tree_.oom_kills();
  const bool failed = record.exit_code != 0 || record.signal != 0;
  if (failure_) {
    launch_failed(record, *failure_);
  } else if (stop_reason_) {
    record.reason = *stop_reason_;
    record.message = stop_message_;
  } else if (record.oom_kills > 0 && failed) {
    record.reason = Ending::OutOfMemory;
  } else if (never_executed_) {
    LaunchFailure failure{.step = attempt::Step::ReachProgram};
    if (record.signal != 0) {
      failure.error = EINTR;
      (void)("signal " + std::to_string(record.signal))
          .copy(failure.about.data(), failure.about.size() - 1);
    }
    launch_failed(record, failure);
  }
}

attempt::ExitRecord Supervisor::record() const {
  attempt::ExitRecord record;
  record.job = order_.job;
  record.attempt = order_.attempt;
  record.launch_id = order_.launch_id;
  record.boot_id = order_.boot_id;
  record.started_wall_ms = started_wall_ms_;
  record.ended_wall_ms = wall_ms();
  record.run_time =
      std::chrono::milliseconds((monotonic_ns() - started_ns_ - stood_ns()) / 1'000'000);
  rusage usage{};
  (void)::getrusage(RUSAGE_CHILDREN, &usage);
  record.cpu_time = ms_of(usage.ru_utime) + ms_of(usage.ru_stime);
  record.peak_memory_bytes =
      tree_.peak_memory().value_or(static_cast<std::int64_t>(usage.ru_maxrss) * 1024);
  say_how_it_ended(record);
  return record;
}

}  // namespace gflow::shim
