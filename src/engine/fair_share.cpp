// SPDX-License-Identifier: Apache-2.0
#include "engine/fair_share.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/share.h"

namespace gflow::engine {

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

std::int64_t FairShare::weight(std::uint32_t uid) const {
  const auto at = rules_.weights.find(uid);
  return at == rules_.weights.end() ? kEqualWeight : std::max(at->second, 1);
}

void FairShare::charge(std::uint32_t uid, std::int64_t parts, seconds held, seconds now) {
  if (parts <= 0 || held <= seconds::zero()) return;
  const std::int64_t units = std::int64_t{1} << kFractionBits;
  const std::int64_t max_parts = kMax / units / std::max<std::int64_t>(held.count(), 1);
  const std::int64_t amount =
      std::min(parts, max_parts) * held.count() / Share::kWholeParts * units +
      std::min(parts, max_parts) * held.count() % Share::kWholeParts * units / Share::kWholeParts;
  const std::int64_t at = moment(now);
  const auto add = [&](Account& account) {
    account.amount = std::min(faded(account, at) + amount, kMax);
    account.at = at;
  };
  add(accounts_[uid]);
  add(all_);
  // Who had nothing for long is nobody new again.
  std::erase_if(accounts_, [&](const auto& entry) { return faded(entry.second, at) == 0; });
}

std::int64_t FairShare::used(std::uint32_t uid, seconds now) const {
  const auto at = accounts_.find(uid);
  return at == accounts_.end() ? 0 : faded(at->second, moment(now)) >> kFractionBits;
}

/// The equal part is that of this user's weight among all who have an account.
seconds FairShare::standing(std::uint32_t uid, seconds now) const {
  const auto account = accounts_.find(uid);
  if (rules_.step <= seconds::zero() || account == accounts_.end()) return seconds::zero();
  std::int64_t weights = 0;
  for (const auto& [other, ignored] : accounts_) weights += weight(other);
  const std::int64_t had = faded(account->second, moment(now));
  std::int64_t part = faded(all_, moment(now)) / weights * weight(uid);
  int steps = 0;
  while (steps < rules_.max_steps && part > 0 && had / 2 >= part) {
    part *= 2;
    ++steps;
  }
  return steps * rules_.step;
}

}  // namespace gflow::engine
