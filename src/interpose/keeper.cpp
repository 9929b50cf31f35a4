// SPDX-License-Identifier: Apache-2.0
#include "interpose/keeper.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "interpose/session.h"
#include "interpose/usage.h"
#include "share/account_file.h"

namespace gflow::interpose {

struct Keeper::Stretch {
  std::uint64_t start;
  Usage usage;
  bool has_turn;
  bool is_ending = false;
};

struct Keeper::Blocking {
  std::optional<std::uint64_t> first;
  std::uint64_t since;       ///< he stands there
  std::uint64_t free_since;  ///< the device is, and nobody was passed
};

Keeper::Keeper(Gate& gate, const char* turn_directory)
    : gate_(gate), device_(gate.device()), turn_(turn_directory, share::kTurnName) {}

bool start_keeper_of(Gate& gate) {
  const auto keep = [](void* keeper) -> void* {
    static_cast<Keeper*>(keeper)->keep();
    return nullptr;
  };
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): kept for ever
  return start_keeper_thread(keep, new Keeper(gate, Session::get().turn_directory()));
}

void wait_until_due(std::size_t device) {
  for (;;) {
    const std::uint64_t due = Session::get().due(device);
    const std::uint64_t time = now();
    if (due <= time) return;
    sleep_for(std::min(due - time, kShareLook));
  }
}

void Keeper::keep() {
  while (gate_.wait_until_wanted()) {
    wait_until_due(device_);
    const bool has_turn = take_turn();
    const std::uint64_t start = now();
    const std::uint64_t since = busy_since_ != 0 ? busy_since_ : start;
    Stretch stretch{.start = start, .usage = {.looked_at = since}, .has_turn = has_turn};
    gate_.open();
    watch(stretch);
    close(stretch);
  }
}

/// False if there is none to be had. What a process keeps that does not give it back, as one that
/// is stopped, is waited for once, until it is free again.
bool Keeper::take_turn() {
  for (std::size_t place = 0; place < Turn::kPlaces; ++place) {
    if (!wait_for_turn(place)) continue;
    if (turn_.why_not() == 0) return true;
    say_shared(std::strerror(turn_.why_not()));  // NOLINT(concurrency-mt-unsafe)
    return false;
  }
  return false;
}

bool Keeper::wait_for_turn(std::size_t place) {
  turn_.go_to(place);
  line_up();
  Turn::Holder holder = turn_.holder();
  std::uint64_t since = looked_.at(now());
  std::uint64_t further = 0;
  Blocking blocking{.first = std::nullopt, .since = since, .free_since = since};
  while (!holder.is_nobody() || !turn_.try_take()) {
    wanted_at_ = now();
    const std::uint64_t time = looked_.at(wanted_at_);
    const bool is_kept = !holder.is_nobody() && holder == kept_by_[place];
    if (is_kept || time - since >= kPatience) {
      turn_.line().leave();
      kept_by_[place] = holder;
      say_shared("it is not given back by another process");
      return false;
    }
    pass_who_stands(blocking, time, holder.is_nobody());
    sleep_for(kLook);
    const Turn::Holder before = std::exchange(holder, turn_.holder());
    if (holder != before) {
      since = looked_.at(now());
      // He may have passed this one, and does not look at that place any more.
      if (!holder.is_nobody()) further += Line::kStep;
    }
    // Other processes change it.
    turn_.line().stand(Session::get().progress(device_, 0) + further);
  }
  kept_by_[place] = {};
  return true;
}

/// Who does not take the device that is free, or stands before this one and does not move for too
/// long while others have it, as one that is stopped.
void Keeper::pass_who_stands(Blocking& blocking, std::uint64_t time, bool is_free) {
  Line& line = turn_.line();
  if (!is_free) blocking.free_since = time;
  const auto first = line.first();
  if (first != blocking.first) {
    blocking.first = first;
    blocking.since = time;
  }
  const bool is_late = time - blocking.since >= kPatience && line.is_one_before_own();
  if (time - blocking.free_since < kPassed && !is_late) return;
  line.pass_first();
  blocking.free_since = time;
}

void Keeper::line_up() {
  const auto first = turn_.line().first();
  turn_.line().stand(first ? Session::get().line_up(device_, *first, now() - left_at_)
                           : Session::get().progress(device_, 0));
}

/// Once.
void Keeper::say_shared(const char* why) {
  if (has_said_) return;
  has_said_ = true;
  say({"gflow: this process uses the GPU while others do: ", turn_.path(), ": ", why});
}

bool Keeper::is_contended(std::uint64_t time) const { return time - wanted_at_ < kRemembered; }

std::uint64_t Keeper::turn_length(std::uint64_t time) const {
  if (!is_contended(time)) return kTurn;
  return std::max(kTurn * Session::get().share(device_) / share::kWholeShare, kShortestTurn);
}

/// Until the next look: sooner where others wait for the end, if that does not take long.
std::uint64_t Keeper::pause(const Stretch& stretch) const {
  const std::uint64_t time = now();
  const bool is_contended = this->is_contended(time);
  if (stretch.is_ending && is_contended && time - stretch.start < 2 * kTurn) return kLastLook;
  return std::clamp(gate_.launch_time() / 16, kLook, is_contended ? 2 * kLook : kMillisecond);
}

void Keeper::watch(Stretch& stretch) {
  for (;;) {
    sleep_for(pace_.about(pause(stretch)));
    switch (look(stretch)) {
      case Next::On:
        break;
      case Next::Anew:
        Session::get().count_use(device_, stretch.start, stretch.usage.used);
        stretch.usage.used = 0;
        if (Session::get().due(device_) > now()) {
          gate_.stop_entries();
        } else {
          stretch.start = stretch.usage.looked_at;
          stretch.is_ending = false;
          stretch.usage.was_idle = stretch.usage.idle_since != 0;
          gate_.allow_anew();
        }
        break;
      case Next::End:
        return;
    }
  }
}

Keeper::Next Keeper::look(Stretch& stretch) {
  const std::uint64_t time = now();
  const bool is_at_work = gate_.is_busy();
  const bool is_wanted = stretch.has_turn && turn_.line().is_anyone();
  if (is_wanted) wanted_at_ = time;
  stretch.usage.look(time, is_at_work, is_wanted);
  const bool is_idle = !is_at_work && time - stretch.usage.idle_since >= kIdle;
  const bool is_passed = !is_at_work && is_wanted && this->is_passed(stretch);
  if (is_idle || is_passed || (stretch.is_ending && !is_at_work)) {
    return has_ended(stretch) ? Next::End : Next::On;
  }
  const std::uint64_t length = time - stretch.start;
  const bool is_over = length >= turn_length(time) || gate_.is_used_up();
  if (!is_over) return Next::On;
  const bool may_stay = !is_wanted && turn_.is_in_first_place();
  if (stretch.usage.was_idle && may_stay && stretch.usage.used > 0) return Next::Anew;
  if (has_ended(stretch) && !is_at_work) return Next::End;
  return length >= kTurn + kPatience && gate_.has_entries_waiting() ? Next::End : Next::On;
}

/// A launch may have come in until the gate was closed, so it is asked only then what is to do.
bool Keeper::has_ended(Stretch& stretch) {
  gate_.stop_entries();
  stretch.is_ending = true;
  return !gate_.is_busy();
}

/// Others have made less progress than the job has by now.
bool Keeper::is_passed(const Stretch& stretch) {
  return turn_.line().is_one_before(Session::get().progress(device_, stretch.usage.used));
}

void Keeper::close(const Stretch& stretch) {
  gate_.stop_entries();
  busy_since_ = stretch.usage.idle_since == 0 ? stretch.usage.looked_at : 0;
  Session::get().count_use(device_, stretch.start, stretch.usage.used);
  if (stretch.has_turn) turn_.give_back();
  left_at_ = now();
  gate_.learn(stretch.usage.looked_at - stretch.start, turn_length(now()));
}

}  // namespace gflow::interpose
