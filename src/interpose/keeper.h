// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "interpose/gate.h"
#include "interpose/pace.h"
#include "interpose/turn.h"

namespace gflow::interpose {

/// Keeps the gate of a device, the only one of the job. It opens for a while, with the device's
/// turn, until all that was launched is done; that time is the job's use, and is waited for before
/// it opens again.
///
/// Nobody waits for ever: where what was launched is not done in a second while others wait (as a
/// kernel that ends only after another one was launched), that second is counted and the next ones
/// are let through when it is paid for; one that waits as long while the same turn
/// goes on has the next ones beside who has that, in turns with the others.
class Keeper {
 public:
  /// Of a gate, and as Turn has it.
  Keeper(Gate& gate, const char* turn_directory);
  /// While the gate is kept.
  void keep();

 private:
  /// A stretch of time in which the gate is open.
  struct Stretch;
  /// How the stretch goes on after a look at it.
  enum class Next : std::uint8_t { On, Anew, End };

  /// Who stands before it in the line.
  struct Blocking;
  [[nodiscard]] bool take_turn();
  [[nodiscard]] bool wait_for_turn(std::size_t place);
  void line_up();
  void pass_who_stands(Blocking& blocking, std::uint64_t time, bool is_free);
  void say_shared(const char* why);
  [[nodiscard]] bool is_contended(std::uint64_t time) const;
  [[nodiscard]] std::uint64_t turn_length(std::uint64_t time) const;
  [[nodiscard]] std::uint64_t pause(const Stretch& stretch) const;
  void watch(Stretch& stretch);
  [[nodiscard]] bool has_ended(Stretch& stretch);
  void close(const Stretch& stretch);
  [[nodiscard]] Next look(Stretch& stretch);
  [[nodiscard]] bool is_passed(const Stretch& stretch);

  Gate& gate_;
  const std::size_t device_;
  Turn turn_;
  OddPace pace_;
  LookedTime looked_;
  std::uint64_t busy_since_ = 0;                       ///< it closed with something not done
  std::array<Turn::Holder, Turn::kPlaces> kept_by_{};  ///< who did not give it back
  std::uint64_t left_at_ = 0;                          ///< when it closed; 0: it never was open
  std::uint64_t wanted_at_ = 0;  ///< when it was seen last that others want the device, too
  bool has_said_ = false;
};

/// Makes one, with a thread of its own. False if there is none to be had.
[[nodiscard]] bool start_keeper_of(Gate& gate);

/// Until the job may use the device again, in steps, as a share may be changed meanwhile.
void wait_until_due(std::size_t device);

}  // namespace gflow::interpose
