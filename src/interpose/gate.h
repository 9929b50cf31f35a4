// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace gflow::interpose {

/// What launches of this process to one device go through, so that its job has no more of the
/// device's time than its share. A thread keeps it, from the first launch on (keeper.h, and for
/// jobs with parts of several devices gang_keeper.h), which opens it for a while until all that was
/// launched is done.
class Gate {
 public:
  /// Of a device of the account.
  explicit Gate(std::size_t device);
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// Any thread, around a launch.
  void enter();
  void leave();

  /// At the end of the process, or where it cannot be kept: it is open from then on.
  void open_for_good();

  // What its keeper does.

  [[nodiscard]] std::size_t device() const { return device_; }
  /// Until a launch waits. False if it is open for good.
  [[nodiscard]] bool wait_until_wanted();
  void open();
  void stop_entries();
  /// It has fallen behind in nothing: as many launches again, and twice as many as last time.
  void allow_anew();
  /// So many more launches though it is closed, until the next stop_entries().
  void let_in(std::uint32_t launches);

  /// Whether it is open for a launch that is under way, or the device has not done all of them.
  [[nodiscard]] bool is_busy();
  [[nodiscard]] bool has_entries_waiting();
  /// Whether launches wait that are too many for one turn.
  [[nodiscard]] bool is_used_up();
  [[nodiscard]] std::uint32_t launched();  ///< since the process began
  [[nodiscard]] bool may_be_entered();
  /// How many launches are a turn of that length, from what it was open for now.
  void learn(std::uint64_t was_open, std::uint64_t turn);
  /// Nanoseconds a launch takes of the device, as learned; 0: not known.
  [[nodiscard]] std::uint64_t launch_time() const { return launch_time_; }

 private:
  void start_keeper();
  [[nodiscard]] bool lets_in() const { return extra_ > 0 || (is_open_ && entered_ < allowed_); }

  const std::size_t device_;
  std::mutex lock_;
  pthread_cond_t changed_;
  // Under the lock.
  std::uint32_t keeper_of_ = 0;  ///< the process that has one
  bool is_open_ = false;
  bool is_free_ = false;  ///< for good
  bool is_wanted_ = false;
  std::uint32_t waiting_ = 0;
  std::uint32_t inside_ = 0;
  std::uint32_t entered_ = 0;   ///< since it opened
  std::uint32_t launched_ = 0;  ///< ever
  std::uint32_t allowed_ = 1;
  std::uint32_t extra_ = 0;  ///< though it is closed
  // The keeper's.
  std::uint64_t launch_time_ = 0;
};

/// That of a device; null if this process may use it as it likes.
[[nodiscard]] Gate* gate_of(std::size_t device);
/// The same where it was asked for before; else null.
[[nodiscard]] Gate* known_gate_of(std::size_t device);

/// Whether there is a gate at all. It costs a launch nothing but this.
[[nodiscard]] inline bool has_gates();

/// In the child of a fork.
void forget_gates();

namespace gates {

enum class State : std::uint8_t { Unknown, None, Some };
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): read by every launch
extern std::atomic<State> state;
[[nodiscard]] State find();

}  // namespace gates

inline bool has_gates() {
  const gates::State known = gates::state.load(std::memory_order_relaxed);
  return (known == gates::State::Unknown ? gates::find() : known) == gates::State::Some;
}

}  // namespace gflow::interpose
