// SPDX-License-Identifier: Apache-2.0
#include "interpose/gathering.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "interpose/pace.h"
#include "interpose/session.h"
#include "share/gang.h"

namespace gflow::interpose {
namespace {

/// Who bides stands so much behind the first, in progress, that this one has a turn and is first
/// again; nearer, each of its turns would wait until those who bide have looked.
constexpr std::uint64_t kBehind = 2 * kTurn;

bool has(Devices devices, std::size_t device) { return ((devices >> device) & 1U) != 0; }

}  // namespace

Gathering::One& Gathering::one(std::size_t device) {
  auto& its = ones_[device];
  if (!its) {
    std::array<char, 32> name{};
    (void)std::snprintf(name.data(), name.size(), share::kTurnOfFormat, device);
    its = std::make_unique<One>(directory_, name.data());
  }
  return *its;
}

Gathering::Gathering(const char* directory) : directory_(directory) {
  for (std::size_t device = 0; device < share::kMaxDevices; ++device) {
    if (Session::get().has_share(device)) all_.device[all_.count++] = device;
  }
  // By hand: what sorts is of the C++ runtime.
  for (std::size_t end = 1; end < all_.count; ++end) {
    for (std::size_t at = end; at > 0; --at) {
      std::size_t& before = all_.device[at - 1];
      std::size_t& its = all_.device[at];
      if (std::strcmp(Session::get().uuid(before), Session::get().uuid(its)) <= 0) break;
      std::swap(before, its);
    }
  }
}

Gathering::Order Gathering::in_order(Devices devices) const {
  Order order;
  for (std::size_t at = 0; at < all_.count; ++at) {
    if (has(devices, all_.device[at])) order.device[order.count++] = all_.device[at];
  }
  return order;
}

void Gathering::begin(Devices devices, std::uint64_t away) {
  devices_ = devices;
  order_ = in_order(devices);
  state_ = State::Biding;
  taken_ = 0;
  blocked_since_ = 0;
  const std::uint64_t time = looked_.at(now());
  for (std::size_t at = 0; at < order_.count; ++at) {
    const std::size_t device = order_.device[at];
    One& its = one(device);
    its.turn.go_to(0);
    its.holder = {};
    its.held_since = its.passed_at = its.blocked_since = time;
    its.blocked_by.reset();
    its.further = 0;
    its.is_without = false;
    line_up(device, away);
    bide(device);
  }
}

/// To where those are who have the device or want it.
void Gathering::line_up(std::size_t device, std::uint64_t away) {
  Turn& turn = one(device).turn;
  const auto of_line = turn.line().first_but(turn.biding());
  const auto of_gangs = turn.gangs().first();
  if (!of_line && !of_gangs) return;
  constexpr std::uint64_t kNone = ~std::uint64_t{0};
  const std::uint64_t first = std::min(of_line.value_or(kNone), of_gangs.value_or(kNone));
  (void)Session::get().line_up(device, first, away);
}

void Gathering::bide(std::size_t device) {
  One& its = one(device);
  if (its.is_without) return;
  const std::uint64_t progress = Session::get().progress(device, 0);
  const auto first = its.turn.line().first_but(its.turn.biding());
  const std::uint64_t place =
      (first ? std::max(progress, *first + kBehind) : progress) + its.further;
  its.turn.gangs().stand(progress);
  its.turn.biding().stand(place);
  its.turn.line().stand(place);
}

/// Somebody stands before it. Who does for too long without moving, as one that is stopped, is
/// passed: where others have the device all the time it is not seen otherwise.
bool Gathering::is_blocked(std::size_t device, std::uint64_t time) {
  One& its = one(device);
  if (its.is_without) return false;
  const auto first = its.turn.line().first_but(its.turn.biding());
  if (first != its.blocked_by) {
    its.blocked_by = first;
    its.blocked_since = time;
  }
  const std::uint64_t own = Session::get().progress(device, 0) / Line::kStep;
  if (!first || *first / Line::kStep >= own) return false;
  if (time - its.blocked_since >= kPatience) its.turn.line().pass(*first);
  return true;
}

/// Nobody is before it in any line, and of those who want several devices nobody at the first of
/// its own: at each of them there could be another one before it, for ever.
bool Gathering::may_stand(std::uint64_t time) {
  bool is_blocked = false;
  for (std::size_t at = 0; at < order_.count; ++at) {
    is_blocked = this->is_blocked(order_.device[at], time) || is_blocked;
  }
  if (is_blocked) {
    blocked_since_ = 0;
    return false;
  }
  One& first = one(order_.device[0]);
  const std::uint64_t progress = Session::get().progress(order_.device[0], 0);
  if (first.is_without || !first.turn.gangs().is_one_before(progress)) return true;
  const auto by = first.turn.gangs().first();
  if (blocked_since_ == 0 || by != blocked_by_) {
    blocked_by_ = by;
    blocked_since_ = free_since_ = time;
  }
  if (!first.holder.is_nobody()) free_since_ = time;
  // Where others have the device all the time, one of them that is stopped is seen by this alone.
  if (time - free_since_ < kPassed && time - blocked_since_ < kPatience) return false;
  first.turn.gangs().pass_first();
  blocked_since_ = 0;
  return false;
}

/// Who has a device may see only now that it is wanted.
void Gathering::stand(std::uint64_t time) {
  for (std::size_t at = 0; at < order_.count; ++at) {
    One& its = one(order_.device[at]);
    its.further = 0;
    its.held_since = time;
    if (its.is_without) continue;
    stand_in_line(order_.device[at]);
    its.turn.biding().leave();
  }
  state_ = State::Standing;
}

void Gathering::stand_in_line(std::size_t device) {
  One& its = one(device);
  its.turn.line().stand(Session::get().progress(device, 0) + its.further);
}

void Gathering::look(std::size_t device, std::uint64_t time) {
  One& its = one(device);
  if (its.is_without) return;
  const Turn::Holder holder = its.turn.holder();
  if (holder != its.holder) {
    its.holder = holder;
    its.held_since = time;
    if (!holder.is_nobody()) {
      // He may have passed it, and does not look at that place any more.
      its.further += Line::kStep;
      if (state_ == State::Standing) stand_in_line(device);
    }
  }
  if (holder.is_nobody()) {
    if (time - std::max(its.held_since, its.passed_at) < kPassed) return;
    its.turn.line().pass_first();
    its.passed_at = time;
  } else if (holder == its.kept_by[its.turn.place()] || time - its.held_since >= kPatience) {
    go_to_next_place(its, time);
    if (state_ == State::Biding) return bide(device);
    if (!its.is_without) stand_in_line(device);
  }
}

/// What a process keeps that does not give it back, as one that is stopped, is waited for once,
/// until it is free again.
void Gathering::go_to_next_place(One& its, std::uint64_t time) {
  its.kept_by[its.turn.place()] = its.holder;
  its.was_kept = true;
  its.holder = {};
  its.held_since = its.passed_at = time;
  its.turn.line().leave();
  its.turn.biding().leave();
  its.is_without = its.turn.place() + 1 == Turn::kPlaces;
  if (!its.is_without) its.turn.go_to(its.turn.place() + 1);
}

/// Of the first, who stands before it is waited for; of the others, who has it: those who stand
/// there may be waiting for the first.
bool Gathering::take(std::size_t device, bool is_first, std::uint64_t time) {
  One& its = one(device);
  its.taken_at = time;
  if (its.is_without) return true;
  if (!its.turn.holder().is_nobody()) return false;
  if (!(is_first ? its.turn.try_take() : its.turn.try_take_first())) return false;
  its.kept_by[its.turn.place()] = {};
  its.is_without = its.turn.why_not() != 0;
  return true;
}

bool Gathering::step(std::uint64_t time) {
  const std::uint64_t looked = looked_.at(time);
  for (std::size_t at = taken_; at < order_.count; ++at) look(order_.device[at], looked);
  if (state_ == State::Biding) {
    if (may_stand(looked)) {
      stand(looked);
    } else {
      for (std::size_t at = 0; at < order_.count; ++at) bide(order_.device[at]);
      return false;
    }
  }
  while (taken_ < order_.count && take(order_.device[taken_], taken_ == 0, time)) ++taken_;
  if (taken_ < order_.count) return false;
  for (std::size_t at = 0; at < order_.count; ++at) one(order_.device[at]).turn.gangs().leave();
  state_ = State::Has;
  return true;
}

void Gathering::renew() {
  for (std::size_t at = 0; at < order_.count; ++at) {
    One& its = one(order_.device[at]);
    if (!its.is_without) its.turn.renew();
  }
}

void Gathering::give_back() {
  for (std::size_t at = order_.count; at > 0; --at) {
    Turn& turn = one(order_.device[at - 1]).turn;
    turn.give_back();
    turn.gangs().leave();
    turn.biding().leave();
  }
  state_ = State::None;
}

std::uint64_t Gathering::taken_at(std::size_t device) const { return ones_[device]->taken_at; }

bool Gathering::is_wanted(std::size_t device) {
  One& its = one(device);
  return !its.is_without && its.turn.line().is_anyone();
}

bool Gathering::is_wanted_before(std::size_t device, std::uint64_t progress) {
  One& its = one(device);
  return !its.is_without && its.turn.line().is_one_before(progress);
}

bool Gathering::is_in_first_place() const {
  return std::ranges::all_of(order_.device.begin(),
                             order_.device.begin() + static_cast<std::ptrdiff_t>(order_.count),
                             [this](std::size_t device) {
                               const One& its = *ones_[device];
                               return !its.is_without && its.turn.is_in_first_place();
                             });
}

std::optional<Gathering::Trouble> Gathering::trouble() const {
  for (const auto& its : ones_) {
    if (!its) continue;
    const int error = its->turn.why_not();
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the words of a known number
    if (error != 0) return Trouble{.path = its->turn.path(), .why = std::strerror(error)};
    if (its->was_kept) {
      return Trouble{.path = its->turn.path(), .why = "it is not given back by another process"};
    }
  }
  return std::nullopt;
}

}  // namespace gflow::interpose
