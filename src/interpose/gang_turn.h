// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "interpose/gang_file.h"
#include "interpose/gathering.h"
#include "interpose/membership.h"
#include "interpose/pace.h"
#include "interpose/usage.h"

namespace gflow::interpose {

/// A turn of a job on all devices that its processes use, by the one of them that leads: it gets
/// the devices, has all of them open their gates, counts for how long each device is used, and
/// gives all back when everybody's gates are closed and what was launched is done. What it keeps
/// from others while it waits for the rest counts as used. One thread.
///
/// Nobody waits for ever: who does not close his gates in a second, or what is not done then while
/// launches wait, is not waited for.
class GangTurn {
 public:
  GangTurn(GangFile& file, Membership& membership, const char* directory)
      : file_(file), membership_(membership), gathering_(directory) {}

  /// One turn; the process leads in that place meanwhile.
  void have(std::size_t leader);

 private:
  enum class Next : std::uint8_t { On, Anew, Close };

  [[nodiscard]] share::GangLead& lead() { return file_.all().leads[leader_]; }
  [[nodiscard]] Devices wanted_devices();
  void settle();
  [[nodiscard]] Devices settle(std::uint64_t until, bool is_late);
  void gather();
  void begin();
  void open();
  void set(share::Phase phase);
  void watch();
  void begin_anew();
  [[nodiscard]] Next look(std::uint64_t time);
  [[nodiscard]] bool has_closed(std::uint64_t time);
  void note_members();
  void note(std::uint64_t time);
  void count_use();
  void tell_use(std::uint64_t time);
  void beat();
  void end();
  [[nodiscard]] bool is_due() const;
  [[nodiscard]] bool is_contended(std::uint64_t time);
  [[nodiscard]] std::uint64_t turn_length(std::uint64_t time);
  [[nodiscard]] std::uint64_t pause(std::uint64_t time);
  [[nodiscard]] bool is_passed();
  [[nodiscard]] bool was_idle() const;
  [[nodiscard]] std::uint64_t idle_for(std::uint64_t time) const;
  template <typename Visit>
  void for_each_device(Visit visit) const;

  GangFile& file_;
  Membership& membership_;
  Gathering gathering_;
  OddPace pace_;
  std::size_t leader_ = 0;
  std::uint64_t first_number_ = 0;  ///< of those that were opened anew
  std::uint64_t number_ = 0;
  std::uint64_t start_ = 0;
  LookedTime looked_;
  std::uint64_t closing_since_ = 0;  ///< as that has it; 0: it is open
  // Of the last look, at all processes.
  Devices busy_ = 0;  ///< and kEnters
  std::uint32_t wants_ = 0;
  Devices uses_ = 0;
  bool is_wanted_ = false;
  std::array<Usage, share::kMaxDevices> usage_{};
  bool has_said_ = false;
};

}  // namespace gflow::interpose
