// SPDX-License-Identifier: Apache-2.0
#include "interpose/gate.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "interpose/gang_keeper.h"
#include "interpose/keeper.h"
#include "interpose/outstanding.h"
#include "interpose/session.h"

namespace gflow::interpose {
namespace {

/// As many as a driver queues, about.
constexpr std::uint64_t kMostLaunches = 1024;

}  // namespace

Gate::Gate(std::size_t device) : device_(device) { (void)::pthread_cond_init(&changed_, nullptr); }

// -- who launches

void Gate::enter() {
  const auto own = static_cast<std::uint32_t>(::getpid());
  std::unique_lock locked(lock_);
  if (keeper_of_ == 0) start_keeper();
  // A child of clone(2) has no keeper, and is not held to anything.
  while (!is_free_ && keeper_of_ == own && !lets_in()) {
    is_wanted_ = true;
    ++waiting_;
    (void)::pthread_cond_broadcast(&changed_);
    wake_gang();
    (void)::pthread_cond_wait(&changed_, lock_.native_handle());
    --waiting_;
  }
  if (extra_ > 0) --extra_;
  ++entered_;
  ++launched_;
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
  if (has_gang() ? start_gang_keeper() : start_keeper_of(*this)) return;
  is_free_ = true;
  say({"gflow: this process is not held to its share of the GPU: no thread could be made"});
}

// -- the keeper

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

void Gate::open() {
  const std::lock_guard locked(lock_);
  is_open_ = true;
  entered_ = 0;
  (void)::pthread_cond_broadcast(&changed_);
}

void Gate::stop_entries() {
  const std::lock_guard locked(lock_);
  is_open_ = false;
  extra_ = 0;
}

void Gate::let_in(std::uint32_t launches) {
  const std::lock_guard locked(lock_);
  extra_ = launches;
  (void)::pthread_cond_broadcast(&changed_);
}

std::uint32_t Gate::launched() {
  const std::lock_guard locked(lock_);
  return launched_;
}

bool Gate::may_be_entered() {
  const std::lock_guard locked(lock_);
  return is_open_ || extra_ > 0;
}

void Gate::allow_anew() {
  const std::lock_guard locked(lock_);
  is_open_ = true;
  entered_ = 0;
  allowed_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(kMostLaunches, 2 * allowed_));
  (void)::pthread_cond_broadcast(&changed_);
}

bool Gate::is_busy() {
  {
    const std::lock_guard locked(lock_);
    if (inside_ > 0 || (waiting_ > 0 && lets_in())) return true;
  }
  return !is_all_done(device_);
}

bool Gate::has_entries_waiting() {
  const std::lock_guard locked(lock_);
  return waiting_ > 0;
}

bool Gate::is_used_up() {
  const std::lock_guard locked(lock_);
  return waiting_ > 0 && entered_ >= allowed_;
}

/// No more than twice as many as last time, as the next may be longer.
void Gate::learn(std::uint64_t was_open, std::uint64_t turn) {
  const std::lock_guard locked(lock_);
  if (entered_ == 0) return;
  const std::uint64_t each = std::max<std::uint64_t>(was_open / entered_, 1);
  launch_time_ = launch_time_ == 0 ? each : (launch_time_ + each) / 2;
  const std::uint64_t fit = turn / std::max(launch_time_, each);
  allowed_ = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(fit, 1, std::min<std::uint64_t>(kMostLaunches, 2 * allowed_)));
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
  auto* const made = new Gate(device);
  Gate* expected = nullptr;
  if (place.compare_exchange_strong(expected, made)) return made;
  delete made;  // NOLINT(cppcoreguidelines-owning-memory): another thread was first
  return expected;
}

Gate* known_gate_of(std::size_t device) {
  return gates::all()[device].load(std::memory_order_acquire);
}

void forget_gates() {
  // They may be locked, and wait for a keeper that is the parent's.
  for (auto& gate : gates::all()) gate.store(nullptr);
  forget_gang();
  forget_outstanding();
}

}  // namespace gflow::interpose
