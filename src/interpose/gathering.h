// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "interpose/pace.h"
#include "interpose/turn.h"
#include "share/account.h"

namespace gflow::interpose {

/// Devices of the account, as bits.
using Devices = std::uint32_t;

/// How a job gets the turns of several devices at once (docs/design/0033).
///
/// It bides in the line of each, behind those who would take it, until nobody stands before it on
/// any; then it stands before all others, and takes one after another, by UUID. So of two that have
/// devices in common one has the first of these, and the other waits for it and has none behind it:
/// they never wait for each other. One thread.
class Gathering {
 public:
  /// By the files `turn.N` in this directory.
  explicit Gathering(const char* directory);

  /// Begins; it has been away for so long. Calls of step() have to follow.
  void begin(Devices devices, std::uint64_t away);
  /// A look: true if it has all, or as much as is to be had. False: another time, a moment later.
  [[nodiscard]] bool step(std::uint64_t time);
  /// The turn begins: what it kept from others until then was not a turn that takes too long.
  void renew();
  void give_back();

  [[nodiscard]] Devices devices() const { return devices_; }
  /// When it took the device.
  [[nodiscard]] std::uint64_t taken_at(std::size_t device) const;
  /// Whether others want the device; whether one does whose job has made less progress than that.
  [[nodiscard]] bool is_wanted(std::size_t device);
  [[nodiscard]] bool is_wanted_before(std::size_t device, std::uint64_t progress);
  /// Not beside one that did not give one of them back.
  [[nodiscard]] bool is_in_first_place() const;
  /// Why it has a device while others may; null if it does not. The path is of its turn.
  struct Trouble {
    const char* path;
    const char* why;
  };
  [[nodiscard]] std::optional<Trouble> trouble() const;

 private:
  struct One {
    One(const char* directory, const char* name) : turn(directory, name) {}
    Turn turn;
    Turn::Holder holder;
    // As LookedTime has it.
    std::uint64_t held_since = 0;  ///< by that one
    std::uint64_t passed_at = 0;
    std::uint64_t blocked_since = 0;          ///< by the same first
    std::optional<std::uint64_t> blocked_by;  ///< who stands before it in the line
    std::uint64_t further = 0;                ///< progress by which it stands behind its place
    std::uint64_t taken_at = 0;
    std::array<Turn::Holder, Turn::kPlaces> kept_by{};  ///< who did not give it back
    bool is_without = false;                            ///< and uses it while others do
    bool was_kept = false;
  };
  enum class State : std::uint8_t { None, Biding, Standing, Has };

  [[nodiscard]] One& one(std::size_t device);
  void line_up(std::size_t device, std::uint64_t away);
  [[nodiscard]] bool may_stand(std::uint64_t time);
  [[nodiscard]] bool is_blocked(std::size_t device, std::uint64_t time);
  void bide(std::size_t device);
  void stand(std::uint64_t time);
  void stand_in_line(std::size_t device);
  void look(std::size_t device, std::uint64_t time);
  void go_to_next_place(One& its, std::uint64_t time);
  [[nodiscard]] bool take(std::size_t device, bool is_first, std::uint64_t time);

  /// In the order in which they are taken, as all jobs do.
  struct Order {
    std::array<std::size_t, share::kMaxDevices> device{};
    std::size_t count = 0;
  };
  [[nodiscard]] Order in_order(Devices devices) const;

  const char* directory_;
  LookedTime looked_;
  Order all_;
  Devices devices_ = 0;
  Order order_;
  State state_ = State::None;
  std::size_t taken_ = 0;
  std::uint64_t blocked_since_ = 0;          ///< by other gangs alone; 0: it is not
  std::optional<std::uint64_t> blocked_by_;  ///< the first of them
  std::uint64_t free_since_ = 0;             ///< since when the device is, and it is blocked
  std::array<std::unique_ptr<One>, share::kMaxDevices> ones_;
};

}  // namespace gflow::interpose
