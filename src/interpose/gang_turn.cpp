// SPDX-License-Identifier: Apache-2.0
#include "interpose/gang_turn.h"

#include <algorithm>
#include <utility>

#include "interpose/session.h"

namespace gflow::interpose {
namespace {

std::uint64_t word_of(std::uint64_t number, share::Phase phase) {
  return number * 4 + static_cast<std::uint64_t>(phase);
}

}  // namespace

template <typename Visit>
void GangTurn::for_each_device(Visit visit) const {
  for (std::size_t device = 0; device < share::kMaxDevices; ++device) {
    if (((gathering_.devices() >> device) & 1U) != 0) visit(device);
  }
}

void GangTurn::set(share::Phase phase) { lead().turn.store(word_of(number_, phase)); }

void GangTurn::have(std::size_t leader) {
  leader_ = leader;
  const std::uint64_t last = lead().turn.load();
  number_ = last / 4;
  set(share::Phase::Over);
  if (share::phase_of(last) != share::Phase::Over) settle();
  if (!membership_.has_entries_waiting()) return;
  gather();
  begin();
  watch();
  end();
}

/// The leader before ended within a turn, and the kernel has given the devices back: what others
/// launched in it is waited for, and all that was used is counted. Of the first place alone.
void GangTurn::settle() {
  if (leader_ != 0) return;
  first_number_ = number_ - std::min<std::uint64_t>(number_, 1);  // who has not come anew yet
  std::uint64_t until = lead().looked_at.load();
  const std::uint64_t begin = looked_.at(now());
  while (file_.is_there()) {
    membership_.look_outside();
    note_members();
    if (settle(until, looked_.at(now()) - begin >= kPatience) == 0) return;
    beat();
    sleep_for(kLook);
    until = now();
  }
}

/// As far as it was used until then. What is still to be done, without which it is late.
Devices GangTurn::settle(std::uint64_t until, bool is_late) {
  for (std::size_t device = 0; device < share::kMaxDevices; ++device) {
    share::Amount& busy_since = file_.all().busy_since[device];
    const bool is_busy = ((busy_ >> device) & 1U) != 0;
    if (is_busy && busy_since == 0) busy_since.store(until);
    if (busy_since == 0 || (!is_late && (is_busy || (busy_ & share::kEnters) != 0))) continue;
    const std::uint64_t since = std::min(busy_since.load(), until);
    if (Session::get().has_share(device)) Session::get().count_use(device, since, until - since);
    busy_since.store(is_busy ? until : 0);
  }
  return is_late ? 0 : busy_;
}

/// Those of which processes have memory, or to which they have launched something.
Devices GangTurn::wanted_devices() {
  Devices devices = 0;
  file_.for_each_member([&](const share::GangMember& member) { devices |= member.uses.load(); });
  for (std::size_t device = 0; device < share::kMaxDevices; ++device) {
    const Devices its = Devices{1} << device;
    if (!Session::get().has_share(device)) {
      devices &= ~its;
    } else if (Session::get().amounts(device).used > 0) {
      devices |= its;
    }
  }
  return devices & ~share::kEnters;
}

bool GangTurn::is_due() const {
  const std::uint64_t time = now();
  bool is_due = true;
  for_each_device(
      [&](std::size_t device) { is_due = is_due && Session::get().due(device) <= time; });
  return is_due;
}

/// The devices may be more by then, and the share another.
void GangTurn::gather() {
  const std::uint64_t left_at = file_.all().left_at.load();
  for (;;) {
    const Devices devices = wanted_devices();
    std::uint64_t due = 0;
    for (std::size_t device = 0; device < share::kMaxDevices; ++device) {
      if (((devices >> device) & 1U) != 0) due = std::max(due, Session::get().due(device));
    }
    const std::uint64_t time = now();
    beat();
    membership_.look_outside();
    if (due > time) {
      sleep_for(std::min(due - time, kShareLook));
    } else {
      gathering_.begin(devices, time - std::min(left_at, time));
      break;
    }
  }
  while (file_.is_there() && !gathering_.step(now())) {
    file_.all().wanted_at.store(now());
    beat();
    membership_.look_outside();
    sleep_for(kLook);
  }
  const auto trouble = gathering_.trouble();
  if (!trouble || std::exchange(has_said_, true)) return;
  say({"gflow: this process uses the GPU while others do: ", trouble->path, ": ", trouble->why});
}

/// What was not done when the last turn ended is used on.
void GangTurn::begin() {
  start_ = now();
  closing_since_ = 0;
  for_each_device([&](std::size_t device) {
    const std::uint64_t taken_at = gathering_.taken_at(device);
    const std::uint64_t busy_since = leader_ == 0 ? file_.all().busy_since[device].exchange(0) : 0;
    usage_[device] = busy_since != 0
                         ? Usage{.looked_at = busy_since}
                         : Usage{.looked_at = taken_at, .idle_since = taken_at, .was_idle = true};
    usage_[device].look(start_, busy_since != 0, gathering_.is_wanted(device));
    if (busy_since == 0) usage_[device].idle_since = start_;
  });
  gathering_.renew();
  lead().devices.store(gathering_.devices());
  first_number_ = number_ + 1;
  open();
}

void GangTurn::open() {
  lead().length.store(static_cast<std::uint32_t>(turn_length(start_) / kMicrosecond));
  ++number_;
  set(share::Phase::Open);
  (void)membership_.enter(leader_, word_of(number_, share::Phase::Open));
}

/// Numbered anew, so that everybody's gates open anew.
void GangTurn::begin_anew() {
  count_use();
  if (!is_due()) {
    closing_since_ = looked_.at(now());
    return set(share::Phase::Closing);
  }
  start_ = now();
  for_each_device(
      [&](std::size_t device) { usage_[device].was_idle = usage_[device].idle_since != 0; });
  membership_.leave(turn_length(start_));
  open();
}

void GangTurn::watch() {
  for (;;) {
    sleep_for(pace_.about(pause(now())));
    const std::uint64_t time = now();
    if (!file_.is_there()) return;
    const std::uint64_t looked = looked_.at(time);
    if (closing_since_ != 0) {
      membership_.look_closing(time);
      note(time);
      if (has_closed(looked)) return;
      continue;
    }
    membership_.look();
    note(time);
    switch (look(time)) {
      case Next::On:
        break;
      case Next::Anew:
        begin_anew();
        break;
      case Next::Close:
        closing_since_ = looked;
        set(share::Phase::Closing);
        break;
    }
  }
}

void GangTurn::beat() { lead().looked_at.store(now()); }

/// What all processes do.
void GangTurn::note_members() {
  busy_ = wants_ = uses_ = 0;
  file_.for_each_member([&](const share::GangMember& member) {
    uses_ |= member.uses.load();
    const std::uint64_t turn = member.turn.load();
    if (member.leader.load() != leader_ || turn < first_number_ || turn > number_) return;
    busy_ |= member.busy.load();
    wants_ |= member.wants.load();
  });
}

/// That, and whether others want the devices.
void GangTurn::note(std::uint64_t time) {
  note_members();
  is_wanted_ = false;
  for_each_device([&](std::size_t device) {
    const bool is_wanted = gathering_.is_wanted(device);
    is_wanted_ = is_wanted_ || is_wanted;
    usage_[device].look(time, ((busy_ >> device) & 1U) != 0, is_wanted);
  });
  if (is_wanted_) file_.all().wanted_at.store(time);
  tell_use(time);
}

GangTurn::Next GangTurn::look(std::uint64_t time) {
  const bool is_at_work = (busy_ & ~share::kEnters) != 0;
  if (!is_at_work && (idle_for(time) >= kIdle || (is_wanted_ && is_passed()))) return Next::Close;
  if ((uses_ & ~gathering_.devices()) != 0) return Next::Close;
  const bool is_used_up = (wants_ & share::kIsUsedUp) != 0;
  if (time - start_ < turn_length(time) && !is_used_up) return Next::On;
  const bool may_stay = !is_wanted_ && gathering_.is_in_first_place();
  return may_stay && was_idle() ? Next::Anew : Next::Close;
}

/// Somebody may enter after it was seen that nobody does, and before that was said: it is looked
/// once more. What waits for a device that the turn has not would wait for ever.
bool GangTurn::has_closed(std::uint64_t time) {
  if (busy_ != 0) {
    if ((uses_ & ~gathering_.devices()) != 0) return time - closing_since_ >= kTurn;
    const bool is_late = time - closing_since_ >= kPatience;
    return is_late && ((busy_ & share::kEnters) != 0 || (wants_ & share::kWaits) != 0);
  }
  set(share::Phase::Over);
  note(now());
  if (busy_ == 0) return true;
  set(share::Phase::Closing);
  return false;
}

void GangTurn::count_use() {
  for_each_device([&](std::size_t device) {
    Usage& its = usage_[device];
    if (its.used > 0) Session::get().count_use(device, start_, its.used);
    its.used = 0;
  });
}

/// For whoever leads next, should this one end before it counts.
void GangTurn::tell_use(std::uint64_t time) {
  lead().looked_at.store(time);
  if (leader_ != 0) return;
  for_each_device([&](std::size_t device) {
    const Usage& its = usage_[device];
    const bool is_used = its.idle_since == 0 || its.used > 0;
    file_.all().busy_since[device].store(is_used ? its.looked_at - its.used : 0);
  });
}

void GangTurn::end() {
  set(share::Phase::Over);
  count_use();
  tell_use(now());
  gathering_.give_back();
  const std::uint64_t time = now();
  file_.all().left_at.store(time);
  membership_.leave(turn_length(time));
}

bool GangTurn::is_contended(std::uint64_t time) {
  return time - std::min(time, file_.all().wanted_at.load()) < kRemembered;
}

/// By the least of its shares.
std::uint64_t GangTurn::turn_length(std::uint64_t time) {
  if (!is_contended(time)) return kTurn;
  std::uint64_t least = share::kWholeShare;
  for_each_device(
      [&](std::size_t device) { least = std::min(least, Session::get().share(device)); });
  return std::max(kTurn * least / share::kWholeShare, kShortestTurn);
}

std::uint64_t GangTurn::pause(std::uint64_t time) {
  const bool is_contended = this->is_contended(time);
  if (closing_since_ != 0 && is_contended && time - start_ < 2 * kTurn) return kLastLook;
  return std::clamp(membership_.launch_time() / 16, kLook, is_contended ? 2 * kLook : kMillisecond);
}

/// Others have made less progress on one of the devices than the job has by now.
bool GangTurn::is_passed() {
  bool is_passed = false;
  for_each_device([&](std::size_t device) {
    const std::uint64_t progress = Session::get().progress(device, usage_[device].used);
    is_passed = is_passed || gathering_.is_wanted_before(device, progress);
  });
  return is_passed;
}

bool GangTurn::was_idle() const {
  bool was_idle = true;
  bool is_used = false;
  for_each_device([&](std::size_t device) {
    was_idle = was_idle && usage_[device].was_idle;
    is_used = is_used || usage_[device].used > 0;
  });
  return was_idle && is_used;
}

/// All devices.
std::uint64_t GangTurn::idle_for(std::uint64_t time) const {
  std::uint64_t since = 0;
  for_each_device([&](std::size_t device) { since = std::max(since, usage_[device].idle_since); });
  return time - since;
}

}  // namespace gflow::interpose
