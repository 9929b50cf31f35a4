// SPDX-License-Identifier: Apache-2.0
#include "engine/fair_share.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>

#include "base/share.h"

namespace gflow::engine {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr int kFadeSteps = 32;    // in a half life
constexpr int kFractionBits = 8;  // of a GPU-second
constexpr std::int64_t kMax = std::int64_t{1}
                              << 46;  // of an account, so that sums and products fit

/// 2^(-i / 32) in 2^-16, rounded to nearest.
constexpr std::array<std::int64_t, kFadeSteps> kFade = {
    65536, 64132, 62757, 61413, 60097, 58809, 57549, 56316, 55109, 53928, 52773,
    51642, 50535, 49452, 48393, 47356, 46341, 45348, 44376, 43425, 42495, 41584,
    40693, 39821, 38968, 38133, 37316, 36516, 35734, 34968, 34219, 33486};

}  // namespace

std::int64_t FairShare::moment(seconds now) const {
  const std::int64_t length = std::max<std::int64_t>(rules_.half_life.count() / kFadeSteps, 1);
  return now.count() / length;
}

std::int64_t FairShare::faded(const Account& account, std::int64_t moment) {
  const std::int64_t steps = std::max<std::int64_t>(moment - account.at, 0);
  const std::int64_t halvings = steps / kFadeSteps;
  if (halvings > 62) return 0;
  const std::int64_t part = kFade.at(static_cast<std::size_t>(steps % kFadeSteps));
  return ((account.amount >> halvings) * part) >> 16;
}

namespace {

/// GPU-seconds in fixed point, at most kMax.
std::int64_t amount_of(std::int64_t parts, seconds held) {
  if (parts <= 0 || held <= seconds::zero()) return 0;
  const std::int64_t units = std::int64_t{1} << kFractionBits;
  const std::int64_t max_parts = kMax / units / std::max<std::int64_t>(held.count(), 1);
  const std::int64_t product = std::min(parts, max_parts) * held.count();
  return product / Share::kWholeParts * units +
         product % Share::kWholeParts * units / Share::kWholeParts;
}

std::int64_t amount_of(milliseconds gpu_time) {
  const std::int64_t units = std::int64_t{1} << kFractionBits;
  const milliseconds most = seconds(kMax / units);
  return std::clamp(gpu_time, milliseconds::zero(), most).count() * units / 1000;
}

}  // namespace

void FairShare::charge(std::uint32_t uid, milliseconds gpu_time, seconds now) {
  const std::int64_t amount = amount_of(gpu_time);
  if (amount == 0) return;
  const std::int64_t at = moment(now);
  Account& account = accounts_[uid];
  account.amount = std::min(faded(account, at) + amount, kMax);
  account.at = at;
  // Who had nothing for long is nobody new again.
  std::erase_if(accounts_, [&](const auto& entry) {
    const Account& one = entry.second;
    return faded(one, at) == 0 && is_idle(one);
  });
}

void FairShare::hold(std::uint32_t uid, std::int64_t parts) {
  Account& account = accounts_[uid];
  account.held += parts;
  account.released = std::max<std::int64_t>(account.released - parts, 0);
  if (account.released > 0) released_.insert(uid);
  forget_if_idle(uid);
}

std::int64_t FairShare::held(std::uint32_t uid) const {
  const auto account = accounts_.find(uid);
  return account == accounts_.end() ? 0 : account->second.held;
}

void FairShare::forget_released() {
  for (const std::uint32_t uid : std::exchange(released_, {})) {
    const auto account = accounts_.find(uid);
    if (account == accounts_.end()) continue;
    account->second.released = 0;
    forget_if_idle(uid);
  }
}

void FairShare::carry(std::uint32_t uid, milliseconds gpu_time, int times) {
  const std::int64_t amount = amount_of(gpu_time);
  if (amount == 0) return;
  accounts_[uid].carried += amount * times;
  forget_if_idle(uid);
}

void FairShare::wait(std::uint32_t uid, std::int64_t jobs) {
  accounts_[uid].waiting += jobs;
  forget_if_idle(uid);
}

void FairShare::forget_if_idle(std::uint32_t uid) {
  const auto at = accounts_.find(uid);
  const Account& one = at->second;
  if (one.amount == 0 && is_idle(one)) accounts_.erase(at);
}

std::int64_t FairShare::used(std::uint32_t uid, seconds now) const {
  const auto at = accounts_.find(uid);
  return at == accounts_.end() ? 0 : faded(at->second, moment(now)) >> kFractionBits;
}

std::int64_t FairShare::load(const Account& account, std::int64_t moment) const {
  return faded(account, moment) + std::min(account.carried, kMax) +
         amount_of(account.held + account.released, rules_.half_life);
}

seconds FairShare::steps_of(std::int64_t load, std::int64_t part) const {
  int steps = 0;
  for (std::int64_t twice = part * 2; steps < rules_.max_steps && twice > 0 && load >= twice;
       twice *= 2) {
    ++steps;
  }
  return steps * rules_.step;
}

/// The equal part of all who compete, and whether one of them waits who has clearly less.
FairShare::Comparison FairShare::compare(std::int64_t moment) const {
  std::int64_t all = 0;
  std::int64_t many = 0;
  for (const auto& [uid, one] : accounts_) {
    if (!competes(one)) continue;
    ++many;
    all += load(one, moment);
  }
  Comparison found;
  if (many < 2 || rules_.step <= seconds::zero()) return found;
  found.part = all / many;
  found.little = found.part / 100 * rules_.little_percent;
  found.one_has_little = std::ranges::any_of(accounts_, [&](const auto& entry) {
    return entry.second.waiting > 0 && load(entry.second, moment) <= found.little;
  });
  return found;
}

bool FairShare::settle(seconds now) {
  settled_ = now;
  const std::int64_t at = moment(now);
  const Comparison found = compare(at);
  bool better = false;
  for (auto& [uid, one] : accounts_) {
    const seconds before = one.penalty;
    one.penalty = seconds::zero();
    if (found.part > 0 && competes(one)) {
      const std::int64_t has = load(one, at);
      one.penalty = steps_of(has, found.part);
      if (found.one_has_little && has > found.little) one.penalty += rules_.lead;
    }
    better = better || one.penalty < before;
  }
  return better;
}

seconds FairShare::penalty(std::uint32_t uid) const {
  const auto account = accounts_.find(uid);
  return account == accounts_.end() ? seconds::zero() : account->second.penalty;
}

FairShare FairShare::among(const std::set<std::uint32_t>& uids) const {
  FairShare some(rules_);
  some.settled_ = settled_;
  for (const auto& [uid, one] : accounts_) {
    if (competes(one) || uids.contains(uid)) some.accounts_.emplace(uid, one);
  }
  return some;
}

bool FairShare::holds_like(const FairShare& other) const {
  const auto holds = [](const FairShare& one, std::uint32_t uid) {
    const auto at = one.accounts_.find(uid);
    if (at == one.accounts_.end()) return std::tuple<std::int64_t, std::int64_t, std::int64_t>{};
    return std::tuple{at->second.held, at->second.carried, at->second.waiting};
  };
  const auto like = [&](const auto& entry) {
    return holds(*this, entry.first) == holds(other, entry.first);
  };
  return std::ranges::all_of(accounts_, like) && std::ranges::all_of(other.accounts_, like);
}

}  // namespace gflow::engine
