// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "interpose/gang_file.h"
#include "interpose/gate.h"
#include "interpose/gathering.h"
#include "interpose/pace.h"

namespace gflow::interpose {

/// How one process takes part in a turn of its job: it opens the gates of its devices, tells the
/// others what they do, and closes them when the turn does. One thread, which is that of its gates.
///
/// When a turn closes, what some processes launched may wait for what others have not launched yet,
/// as kernels of a collective do. So who has launched less than one that has something to do may
/// launch as much; and who has nothing to do for a while, and others have, may launch one after
/// another until they have not.
class Membership {
 public:
  explicit Membership(GangFile& file) : file_(file) {}

  /// Opens its gates of the devices that the turn has, if it is still as told, of the leader in
  /// that place; of one that closes they stay closed but for what others wait for. False if it is
  /// not.
  [[nodiscard]] bool enter(std::size_t leader, std::uint64_t turn);
  /// A look at the gates, which are told of, while it is open.
  void look();
  /// The same while the turn closes, of which they are closed.
  void look_closing(std::uint64_t time);
  /// Closes the gates. What they still have to do is told on.
  void leave(std::uint64_t turn_length);
  /// The same while it takes part in no turn: a look at what is still to do of those before.
  void look_outside();
  /// Nothing is told of it any more.
  void forget();

  /// What it was last: devices that are at work, as bits.
  [[nodiscard]] Devices busy() const { return busy_; }
  /// Nothing is at work since so long. 0: something is.
  [[nodiscard]] std::uint64_t idle_for(std::uint64_t time) const;
  /// Nanoseconds that a launch takes, the longest of its devices.
  [[nodiscard]] std::uint64_t launch_time() const;
  [[nodiscard]] bool has_entries_waiting() const;
  /// Tells which devices it uses.
  void note_uses();

 private:
  /// What other devices do in the same turn.
  struct Others {
    bool are_busy = false;
    bool are_busy_by_themselves = false;  ///< not as they were let in while the turn closes
    std::int32_t ahead = 0;               ///< in launches, the most of one that is busy
  };
  template <typename Visit>
  void for_each_gate(Visit visit) const;
  void tell(bool may_enter);
  [[nodiscard]] std::uint32_t launched(Gate& gate) const;
  [[nodiscard]] Others others_of(Gate& gate);
  void compare(Gate& gate);
  [[nodiscard]] std::uint32_t missing(Gate& gate, std::uint64_t time);
  void let_in(Gate& gate, std::uint32_t launches);

  GangFile& file_;
  std::size_t leader_ = 0;
  std::uint64_t turn_ = 0;  ///< as it was when it entered
  std::uint64_t entered_at_ = 0;
  Devices devices_ = 0;
  Devices busy_ = 0;
  bool was_open_ = false;  ///< when it entered
  bool is_closing_ = false;
  std::uint64_t stuck_ = 0;  ///< after so long without anything to do it is let in
  Devices steps_ = 0;        ///< as it was for that
  std::array<std::uint64_t, share::kMaxDevices> busy_at_{};  ///< when it was seen last
  /// What is added to launches, so that ranks that have always launched more than others count as
  /// these do, and for how many turns they did not.
  std::array<std::uint32_t, share::kMaxDevices> more_{};
  std::array<std::uint32_t, share::kMaxDevices> unlike_{};
};

}  // namespace gflow::interpose
