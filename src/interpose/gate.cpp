// SPDX-License-Identifier: Apache-2.0
#include "interpose/gate.h"

#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "interpose/holdings.h"
#include "interpose/outstanding.h"
#include "interpose/real.h"
#include "interpose/session.h"

namespace gflow::interpose {
namespace {

constexpr std::uint64_t kMicrosecond = 1'000;
constexpr std::uint64_t kMillisecond = 1'000 * kMicrosecond;
/// How long a process has the device before it is another's turn: with the whole of it; who has a
/// part has it shorter, where others want it, as one that wants it again after a moment would wait
/// long for those with little.
constexpr std::uint64_t kTurn = 20 * kMillisecond;
constexpr std::uint64_t kShortestTurn = 4 * kMillisecond;
constexpr std::uint64_t kRemembered = 100 * kMillisecond;
/// Between looks at whether all is done.
constexpr std::uint64_t kLook = 100 * kMicrosecond;
/// Between looks at what is still to be done before others have their turn.
constexpr std::uint64_t kLastLook = 20 * kMicrosecond;
/// It stays open for as long without work, if nobody else stands before it.
constexpr std::uint64_t kIdle = kMillisecond;
/// Who is first in line and does not take a device that is free for so long is passed.
constexpr std::uint64_t kPassed = 20 * kMillisecond;
constexpr std::uint64_t kPatience = 1'000 * kMillisecond;
/// As many as a driver queues, about.
constexpr std::uint64_t kMostLaunches = 1024;

std::uint64_t now() {
  timespec time{};
  (void)::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

void sleep_for(std::uint64_t length) {
  const timespec time{.tv_sec = static_cast<time_t>(length / 1'000'000'000),
                      .tv_nsec = static_cast<long>(length % 1'000'000'000)};
  (void)::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
}

}  // namespace

struct Gate::Stretch {
  std::uint64_t start;
  std::uint64_t looked_at;
  std::uint64_t idle_since = 0;  ///< 0: it is busy
  std::uint64_t used = 0;        ///< and not counted yet
  bool has_turn;
  bool was_idle = false;  ///< so the device has not fallen behind
  bool is_ending = false;
};

Gate::Gate(std::size_t device, const char* turn_directory)
    : device_(device), turn_(turn_directory) {
  (void)::pthread_cond_init(&changed_, nullptr);
}

// -- who launches

void Gate::enter() {
  const auto own = static_cast<std::uint32_t>(::getpid());
  std::unique_lock locked(lock_);
  if (keeper_of_ == 0) start_keeper();
  // A child of clone(2) has no keeper, and is not held to anything.
  while (!is_free_ && keeper_of_ == own && !(is_open_ && entered_ < allowed_)) {
    is_wanted_ = true;
    ++waiting_;
    (void)::pthread_cond_broadcast(&changed_);
    (void)::pthread_cond_wait(&changed_, lock_.native_handle());
    --waiting_;
  }
  ++entered_;
  ++inside_;
}

void Gate::leave() {
  const std::lock_guard locked(lock_);
  --inside_;
}

void Gate::open_for_good() {
  const std::lock_guard locked(lock_);
  is_free_ = true;
  (void)::pthread_cond_broadcast(&changed_);
}

/// Under the lock.
void Gate::start_keeper() {
  keeper_of_ = static_cast<std::uint32_t>(::getpid());
  sigset_t all;
  sigset_t before;
  (void)::sigfillset(&all);
  (void)::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  if (::pthread_create(&thread, nullptr, keep_of, this) == 0) {
    (void)::pthread_detach(thread);
  } else {
    is_free_ = true;
    say({"gflow: this process is not held to its share of the GPU: no thread could be made"});
  }
  (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// -- the keeper

void* Gate::keep_of(void* gate) {
  // What sleeps for a tenth of a millisecond is not to sleep longer.
  (void)::prctl(PR_SET_TIMERSLACK, kMicrosecond, 0, 0, 0);
  (void)::prctl(PR_SET_NAME, "gflow-share", 0, 0, 0);
  int mode = abi::kCaptureRelaxed;
  (void)call(driver().cuThreadExchangeStreamCaptureMode, &mode);
  static_cast<Gate*>(gate)->keep();
  return nullptr;
}

void Gate::keep() {
  while (wait_until_wanted()) {
    wait_until_due();
    const bool has_turn = take_turn();
    const std::uint64_t start = now();
    Stretch stretch{.start = start, .looked_at = start, .has_turn = has_turn};
    if (busy_since_ != 0) stretch.looked_at = busy_since_;
    open();
    watch(stretch);
    close(stretch);
  }
}

bool Gate::wait_until_wanted() {
  std::unique_lock locked(lock_);
  while (!is_wanted_ && !is_free_) (void)::pthread_cond_wait(&changed_, lock_.native_handle());
  is_wanted_ = false;
  if (!is_free_ && !Session::get().limits()) {
    is_free_ = true;
    (void)::pthread_cond_broadcast(&changed_);
  }
  return !is_free_;
}

/// In steps, as a share may be changed meanwhile.
void Gate::wait_until_due() {
  for (;;) {
    const std::uint64_t due = Session::get().due(device_);
    const std::uint64_t time = now();
    if (due <= time) return;
    sleep_for(std::min(due - time, 50 * kMillisecond));
  }
}

/// False if there is none to be had. What a process keeps that does not give it back, as one that
/// is stopped, is waited for once, until it is free again.
bool Gate::take_turn() {
  for (std::size_t place = 0; place < Turn::kPlaces; ++place) {
    if (!wait_for_turn(place)) continue;
    if (turn_.why_not() == 0) return true;
    say_shared(std::strerror(turn_.why_not()));  // NOLINT(concurrency-mt-unsafe)
    return false;
  }
  return false;
}

bool Gate::wait_for_turn(std::size_t place) {
  turn_.go_to(place);
  line_up();
  Turn::Holder holder = turn_.holder();
  std::uint64_t since = now();
  std::uint64_t passed_at = since;
  while (!holder.is_nobody() || !turn_.try_take()) {
    const std::uint64_t time = now();
    wanted_at_ = time;
    const bool is_kept = !holder.is_nobody() && holder == kept_by_[place];
    if (is_kept || time - since >= kPatience) {
      turn_.leave_line();
      kept_by_[place] = holder;
      say_shared("it is not given back by another process");
      return false;
    }
    if (holder.is_nobody() && time - std::max(since, passed_at) >= kPassed) {
      turn_.pass_first();
      passed_at = time;
    }
    sleep_for(kLook);
    const Turn::Holder before = std::exchange(holder, turn_.holder());
    if (holder != before) since = now();
    turn_.stand_in_line(Session::get().progress(device_, 0));  // other processes change it
  }
  kept_by_[place] = {};
  return true;
}

void Gate::line_up() {
  const auto first = turn_.first();
  turn_.stand_in_line(first ? Session::get().line_up(device_, *first, now() - left_at_)
                            : Session::get().progress(device_, 0));
}

/// Once.
void Gate::say_shared(const char* why) {
  if (has_said_) return;
  has_said_ = true;
  say({"gflow: this process uses the GPU while others do: ", turn_.path(), ": ", why});
}

void Gate::open() {
  const std::lock_guard locked(lock_);
  is_open_ = true;
  entered_ = 0;
  (void)::pthread_cond_broadcast(&changed_);
}

bool Gate::is_contended(std::uint64_t time) const { return time - wanted_at_ < kRemembered; }

std::uint64_t Gate::turn_length(std::uint64_t time) const {
  if (!is_contended(time)) return kTurn;
  return std::max(kTurn * Session::get().share(device_) / share::kWholeShare, kShortestTurn);
}

/// Half of it to one and a half: work that comes and goes at an even pace would be seen each time
/// otherwise, or never.
std::uint64_t Gate::about(std::uint64_t length) {
  random_ = random_ * 6'364'136'223'846'793'005 + 1'442'695'040'888'963'407;
  return length / 2 + (random_ >> 32) % length;
}

/// Until the next look: sooner where others wait for the end, if that does not take long.
std::uint64_t Gate::pause(const Stretch& stretch) const {
  const std::uint64_t time = now();
  const bool is_contended = this->is_contended(time);
  if (stretch.is_ending && is_contended && time - stretch.start < 2 * kTurn) return kLastLook;
  return std::clamp(launch_time_ / 16, kLook, is_contended ? 2 * kLook : kMillisecond);
}

void Gate::watch(Stretch& stretch) {
  for (;;) {
    sleep_for(about(pause(stretch)));
    switch (look(stretch)) {
      case Next::On:
        break;
      case Next::Anew:
        Session::get().count_use(device_, stretch.start, stretch.used);
        stretch.used = 0;
        if (Session::get().due(device_) > now()) {
          stop_entries();
        } else {
          stretch.start = stretch.looked_at;
          stretch.was_idle = stretch.idle_since != 0;
          allow_anew();
        }
        break;
      case Next::End:
        return;
    }
  }
}

/// Time is used while there is work, and while there is none and others wait for it to end.
void Gate::count(Stretch& stretch, std::uint64_t time, bool is_at_work, bool is_wanted) {
  const bool was_busy = stretch.idle_since == 0;
  const std::uint64_t passed = time - stretch.looked_at;
  if (is_wanted || (was_busy && is_at_work)) {
    stretch.used += passed;
  } else if (was_busy || is_at_work) {
    stretch.used += passed / 2;
  }
  stretch.looked_at = time;
  if (is_at_work) {
    stretch.idle_since = 0;
  } else {
    stretch.was_idle = true;
    if (was_busy) stretch.idle_since = time;
  }
}

Gate::Next Gate::look(Stretch& stretch) {
  const std::uint64_t time = now();
  const bool is_at_work = is_busy();
  const bool is_wanted = stretch.has_turn && turn_.is_wanted();
  if (is_wanted) wanted_at_ = time;
  count(stretch, time, is_at_work, is_wanted);
  const bool is_idle = !is_at_work && time - stretch.idle_since >= kIdle;
  if (is_idle || (!is_at_work && is_wanted && is_passed(stretch))) return Next::End;
  const std::uint64_t length = time - stretch.start;
  const bool is_over = length >= turn_length(time) || is_used_up();
  if (!is_over) return Next::On;
  const bool may_stay = !is_wanted && turn_.is_in_first_place();
  if (stretch.was_idle && may_stay && stretch.used > 0) return Next::Anew;
  stop_entries();
  stretch.is_ending = true;
  if (!is_at_work) return Next::End;
  return length >= kTurn + kPatience && has_entries_waiting() ? Next::End : Next::On;
}

/// Others have made less progress than the job has by now.
bool Gate::is_passed(const Stretch& stretch) {
  return turn_.is_wanted_before(Session::get().progress(device_, stretch.used));
}

void Gate::close(const Stretch& stretch) {
  stop_entries();
  busy_since_ = stretch.idle_since == 0 ? stretch.looked_at : 0;
  Session::get().count_use(device_, stretch.start, stretch.used);
  if (stretch.has_turn) turn_.give_back();
  left_at_ = now();
  learn(stretch);
}

/// How many launches are a turn: no more than twice as many as last time, as the next may be
/// longer.
void Gate::learn(const Stretch& stretch) {
  const std::lock_guard locked(lock_);
  if (entered_ == 0) return;
  const std::uint64_t each =
      std::max<std::uint64_t>((stretch.looked_at - stretch.start) / entered_, 1);
  launch_time_ = launch_time_ == 0 ? each : (launch_time_ + each) / 2;
  const std::uint64_t fit = turn_length(now()) / std::max(launch_time_, each);
  allowed_ = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(fit, 1, std::min<std::uint64_t>(kMostLaunches, 2 * allowed_)));
}

bool Gate::is_busy() {
  {
    const std::lock_guard locked(lock_);
    const bool is_being_entered = is_open_ && waiting_ > 0 && entered_ < allowed_;
    if (inside_ > 0 || is_being_entered) return true;
  }
  return !is_all_done(device_);
}

void Gate::stop_entries() {
  const std::lock_guard locked(lock_);
  is_open_ = false;
}

bool Gate::has_entries_waiting() {
  const std::lock_guard locked(lock_);
  return waiting_ > 0;
}

bool Gate::is_used_up() {
  const std::lock_guard locked(lock_);
  return waiting_ > 0 && entered_ >= allowed_;
}

void Gate::allow_anew() {
  const std::lock_guard locked(lock_);
  is_open_ = true;
  entered_ = 0;
  allowed_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(kMostLaunches, 2 * allowed_));
  (void)::pthread_cond_broadcast(&changed_);
}

// -- all of them

namespace gates {

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): read by every launch
constinit std::atomic<State> state = State::Unknown;

namespace {

using Gates = std::array<std::atomic<Gate*>, share::kMaxDevices>;
Gates& all() {
  static constinit Gates its{};
  return its;
}

/// Before the driver ends, whose own was registered earlier, as it was loaded before a launch.
void at_exit() {
  end_launches();
  for (auto& gate : all()) {
    if (Gate* const its = gate.load()) its->open_for_good();
  }
}

}  // namespace

State find() {
  bool is_any = false;
  for (std::size_t device = 0; device < share::kMaxDevices; ++device) {
    is_any = is_any || Session::get().has_share(device);
  }
  const State found = is_any ? State::Some : State::None;
  State before = State::Unknown;
  if (state.compare_exchange_strong(before, found) && is_any) (void)std::atexit(at_exit);
  return found;
}

}  // namespace gates

Gate* gate_of(std::size_t device) {
  if (!Session::get().has_share(device)) return nullptr;
  std::atomic<Gate*>& place = gates::all()[device];
  if (Gate* const known = place.load(std::memory_order_acquire)) return known;
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): kept for ever
  auto* const made = new Gate(device, Session::get().turn_directory());
  Gate* expected = nullptr;
  if (place.compare_exchange_strong(expected, made)) return made;
  delete made;  // NOLINT(cppcoreguidelines-owning-memory): another thread was first
  return expected;
}

void forget_gates() {
  // They may be locked, and wait for a keeper that is the parent's.
  for (auto& gate : gates::all()) gate.store(nullptr);
  forget_outstanding();
}

}  // namespace gflow::interpose
