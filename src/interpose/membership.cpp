// SPDX-License-Identifier: Apache-2.0
#include "interpose/membership.h"

#include <algorithm>

#include "interpose/session.h"

namespace gflow::interpose {
namespace {

/// What a device may be behind in launches and catch up with at once.
constexpr std::uint64_t kCatchUp = 2 * kMillisecond;
/// Others wait for what it has not launched, it is taken, when all that it has launched is done for
/// so long and theirs is not; after that for twice as long, as they may only be slower.
constexpr std::uint64_t kStuck = 300 * kMicrosecond;

/// Who is behind in launches after so many turns does not do what others do.
constexpr std::uint32_t kUnlike = 8;

constexpr Devices bit(std::size_t device) { return Devices{1} << device; }

}  // namespace

template <typename Visit>
void Membership::for_each_gate(Visit visit) const {
  for (std::size_t device = 0; device < share::kMaxDevices; ++device) {
    Gate* const gate = known_gate_of(device);
    if (gate != nullptr && (devices_ & bit(device)) != 0) visit(*gate);
  }
}

void Membership::note_uses() {
  Devices uses = 0;
  for (std::size_t device = 0; device < share::kMaxDevices; ++device) {
    if (known_gate_of(device) != nullptr) uses |= bit(device);
  }
  file_.own().uses.store(uses);
}

bool Membership::has_entries_waiting() const {
  for (std::size_t device = 0; device < share::kMaxDevices; ++device) {
    Gate* const gate = known_gate_of(device);
    if (gate != nullptr && gate->has_entries_waiting()) return true;
  }
  return false;
}

/// Whoever leads looks at `busy` after it has said that the turn is over; this at the turn after it
/// has said that it enters.
bool Membership::enter(std::size_t leader, std::uint64_t turn) {
  share::GangLead& lead = file_.all().leads[leader];
  share::GangMember& own = file_.own();
  leader_ = leader;
  turn_ = turn;
  entered_at_ = now();
  devices_ = lead.devices.load();
  was_open_ = share::phase_of(turn) == share::Phase::Open;
  is_closing_ = false;
  steps_ = 0;
  own.leader.store(static_cast<std::uint32_t>(leader));
  own.turn.store(turn / 4);
  own.wants.store(0);
  own.steps.store(0);
  busy_ &= devices_;
  own.busy.store(busy_ | (was_open_ ? share::kEnters : 0));
  if (lead.turn.load() != turn) {
    own.busy.store(busy_);
    return false;
  }
  for_each_gate([&](Gate& gate) {
    busy_at_[gate.device()] = entered_at_;
    if (was_open_) gate.open();
  });
  return true;
}

void Membership::tell(bool may_enter) {
  share::GangMember& own = file_.own();
  const std::uint64_t time = now();
  std::uint32_t wants = has_entries_waiting() ? share::kWaits : 0;
  busy_ = 0;
  for_each_gate([&](Gate& gate) {
    own.launched[gate.device()].store(launched(gate));
    if (gate.is_used_up()) wants |= share::kIsUsedUp;
    if (!gate.is_busy()) return;
    busy_ |= bit(gate.device());
    busy_at_[gate.device()] = time;
  });
  own.wants.store(wants);
  own.steps.store(steps_);
  own.busy.store(busy_ | (may_enter ? share::kEnters : 0));
}

void Membership::look() {
  note_uses();
  for_each_gate([&](Gate& gate) {
    if (!gate.may_be_entered()) gate.open();  // it was made after the turn began
  });
  tell(true);
}

std::uint32_t Membership::launched(Gate& gate) const {
  return gate.launched() + more_[gate.device()];
}

/// At the end of a turn, with those who took part in it.
void Membership::compare(Gate& gate) {
  const std::uint32_t own = launched(gate);
  std::int32_t ahead = 0;
  file_.for_each_member([&](const share::GangMember& member) {
    if (member.turn.load() != turn_ / 4 || member.leader.load() != leader_) return;
    for (std::size_t device = 0; device < share::kMaxDevices; ++device) {
      if ((member.uses.load() & bit(device)) == 0) continue;
      ahead = std::max(ahead, static_cast<std::int32_t>(member.launched[device].load() - own));
    }
  });
  std::uint32_t& turns = unlike_[gate.device()];
  turns = ahead == 0 ? 0 : turns + 1;
  if (turns < kUnlike) return;
  more_[gate.device()] += static_cast<std::uint32_t>(ahead);
  turns = 0;
}

Membership::Others Membership::others_of(Gate& gate) {
  Others others;
  const std::uint32_t launched = this->launched(gate);
  const share::GangMember* const own = &file_.own();
  file_.for_each_member([&](const share::GangMember& member) {
    if (member.turn.load() != turn_ / 4 || member.leader.load() != leader_) return;
    const Devices busy = member.busy.load() & ~share::kEnters;
    const Devices steps = member.steps.load();
    for (std::size_t device = 0; device < share::kMaxDevices; ++device) {
      const bool is_itself = &member == own && device == gate.device();
      if (is_itself || (busy & bit(device)) == 0) continue;
      others.are_busy = true;
      if ((steps & bit(device)) != 0) continue;
      others.are_busy_by_themselves = true;
      const auto ahead = static_cast<std::int32_t>(member.launched[device].load() - launched);
      others.ahead = std::max(others.ahead, ahead);
    }
  });
  return others;
}

/// How many launches of those that wait others may be waiting for. Who was let in on trial had done
/// all that it had launched before, so nobody has to launch as much: two that did, each as the
/// other has something to do, would never end.
std::uint32_t Membership::missing(Gate& gate, std::uint64_t time) {
  const Others others = others_of(gate);
  if (!others.are_busy) return 0;
  const Devices own = bit(gate.device());
  if (others.ahead > 0) {
    steps_ &= ~own;
    const auto behind = static_cast<std::uint32_t>(others.ahead);
    return behind * std::max<std::uint64_t>(gate.launch_time(), 1) <= kCatchUp ? behind : 1;
  }
  if ((steps_ & own) != 0 && others.are_busy_by_themselves) return 1;
  steps_ &= ~own;
  if (time - busy_at_[gate.device()] < stuck_) return 0;
  stuck_ *= 2;
  steps_ |= own;
  return 1;
}

void Membership::let_in(Gate& gate, std::uint32_t launches) {
  share::GangMember& own = file_.own();
  own.steps.store(steps_);
  own.busy.fetch_or(share::kEnters);
  const std::uint64_t closing = turn_ / 4 * 4 + static_cast<std::uint64_t>(share::Phase::Closing);
  if (file_.all().leads[leader_].turn.load() != closing) return;
  gate.let_in(launches);
}

void Membership::look_closing(std::uint64_t time) {
  if (!is_closing_) {
    is_closing_ = true;
    stuck_ = kStuck;
    for_each_gate([](Gate& gate) { gate.stop_entries(); });
  }
  bool may_enter = false;
  for_each_gate([&](Gate& gate) {
    if (!gate.may_be_entered()) return;
    if (!gate.is_busy() && !gate.has_entries_waiting()) gate.stop_entries();
    may_enter = may_enter || gate.may_be_entered();
  });
  tell(may_enter);
  for_each_gate([&](Gate& gate) {
    const bool is_at_work = (busy_ & bit(gate.device())) != 0;
    if (is_at_work || gate.may_be_entered() || !gate.has_entries_waiting()) return;
    if (const std::uint32_t launches = missing(gate, time)) let_in(gate, launches);
  });
}

/// A launch may have come in until the gates were closed, so it is asked only then what is to do.
void Membership::leave(std::uint64_t turn_length) {
  const std::uint64_t was_open = now() - entered_at_;
  for_each_gate([&](Gate& gate) {
    gate.stop_entries();
    if (was_open_) gate.learn(was_open, turn_length);
    compare(gate);
  });
  tell(false);
}

void Membership::look_outside() { tell(false); }

void Membership::forget() {
  file_.own().busy.store(0);
  file_.own().wants.store(0);
}

std::uint64_t Membership::idle_for(std::uint64_t time) const {
  if (busy_ != 0) return 0;
  std::uint64_t last = entered_at_;
  for_each_gate([&](Gate& gate) { last = std::max(last, busy_at_[gate.device()]); });
  return time - std::min(last, time);
}

std::uint64_t Membership::launch_time() const {
  std::uint64_t longest = 0;
  for_each_gate([&](Gate& gate) { longest = std::max(longest, gate.launch_time()); });
  return longest;
}

}  // namespace gflow::interpose
