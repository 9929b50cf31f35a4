// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "interpose/turn.h"

namespace gflow::interpose {

/// What launches of this process to one device go through, so that its job has no more of the
/// device's time than its share. It opens for a while, with the device's turn, until all that was
/// launched is done; that time is the job's use, and is waited for before it opens again. A thread
/// of its own keeps it, from the first launch on.
///
/// Nobody waits for ever: where what was launched is not done in a second while others wait (as a
/// kernel that ends only after another one was launched), that second is counted and the next ones
/// are let through when it is paid for; one that waits as long while the same turn
/// goes on has the next ones beside who has that, in turns with the others.
class Gate {
 public:
  /// Of a device of the account, and as Turn has it.
  Gate(std::size_t device, const char* turn_directory);
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// Any thread, around a launch.
  void enter();
  void leave();

  /// At the end of the process, or where it cannot be kept: it is open from then on.
  void open_for_good();

 private:
  /// A stretch of time in which it is open.
  struct Stretch;

  static void* keep_of(void* gate);
  void start_keeper();
  void keep();
  [[nodiscard]] bool wait_until_wanted();
  void wait_until_due();
  [[nodiscard]] bool take_turn();
  [[nodiscard]] bool wait_for_turn(std::size_t place);
  void line_up();
  void say_shared(const char* why);
  void open();
  [[nodiscard]] bool is_contended(std::uint64_t time) const;
  [[nodiscard]] std::uint64_t turn_length(std::uint64_t time) const;
  [[nodiscard]] std::uint64_t about(std::uint64_t length);
  [[nodiscard]] std::uint64_t pause(const Stretch& stretch) const;
  void watch(Stretch& stretch);
  void close(const Stretch& stretch);
  /// How the stretch goes on after a look at it.
  enum class Next : std::uint8_t { On, Anew, End };
  [[nodiscard]] Next look(Stretch& stretch);
  static void count(Stretch& stretch, std::uint64_t time, bool is_at_work, bool is_wanted);
  [[nodiscard]] bool is_passed(const Stretch& stretch);
  void learn(const Stretch& stretch);
  [[nodiscard]] bool is_busy();
  void stop_entries();
  [[nodiscard]] bool has_entries_waiting();
  [[nodiscard]] bool is_used_up();
  void allow_anew();

  const std::size_t device_;
  Turn turn_;
  std::mutex lock_;
  pthread_cond_t changed_;
  // Under the lock.
  std::uint32_t keeper_of_ = 0;  ///< the process that has one
  bool is_open_ = false;
  bool is_free_ = false;  ///< for good
  bool is_wanted_ = false;
  std::uint32_t waiting_ = 0;
  std::uint32_t inside_ = 0;
  std::uint32_t entered_ = 0;  ///< since it opened
  std::uint32_t allowed_ = 1;
  // The keeper's.
  std::uint64_t launch_time_ = 0;  ///< nanoseconds a launch takes of the device, as learned
  std::uint64_t busy_since_ = 0;   ///< it closed with something not done
  std::array<Turn::Holder, Turn::kPlaces> kept_by_{};  ///< who did not give it back
  std::uint64_t random_ = 0;
  std::uint64_t left_at_ = 0;    ///< when it closed; 0: it never was open
  std::uint64_t wanted_at_ = 0;  ///< when it was seen last that others want the device, too
  bool has_said_ = false;
};

/// That of a device; null if this process may use it as it likes.
[[nodiscard]] Gate* gate_of(std::size_t device);

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
