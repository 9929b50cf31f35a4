// SPDX-License-Identifier: Apache-2.0
#include "engine/order.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/share.h"

namespace gflow::engine {

using std::chrono::seconds;

namespace {

constexpr std::int64_t kWeightOne = Share::kWholeParts;
// A job with little or no GPU still counts as a sixteenth of one.
constexpr std::int64_t kLeastParts = Share::kWholeParts / 16;
constexpr int kOctaveBits = 10;
// GPU-seconds, not to overflow: 30 years of 10,000 GPUs.
constexpr std::int64_t kMaxHold = std::int64_t{1} << 43;

/// Largest whole number whose square is not above n.
std::int64_t square_root(std::int64_t n) {
  std::int64_t root = 0;
  for (std::int64_t bit = std::int64_t{1} << 30; bit > 0; bit >>= 1) {
    if ((root + bit) * (root + bit) <= n) root += bit;
  }
  return root;
}

/// Logarithm to base 2 in fixed point: exact at powers of 2, straight lines between them.
std::int64_t octaves_of(std::int64_t n) {
  if (n <= 1) return 0;
  const int whole = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n))) - 1;
  const std::int64_t above = n - (std::int64_t{1} << whole);
  const std::int64_t part =
      whole >= kOctaveBits ? above >> (whole - kOctaveBits) : above << (kOctaveBits - whole);
  return (std::int64_t{whole} << kOctaveBits) + part;
}

/// Who stands back has to wait so much longer to be guarded.
seconds waited(const Waiter& waiter, seconds now) {
  return now - waiter.ready - waiter.served - waiter.penalty;
}

/// What waiting counts beyond itself: by its square, so that just before the guard each second
/// counts as two.
seconds impatience(const OrderRules& rules, const Waiter& waiter, seconds now) {
  constexpr std::int64_t kWhole = 1024;
  const std::int64_t time = waited(waiter, now).count();
  if (waiter.stoppable || time <= 0 || time >= rules.guard.count()) return seconds::zero();
  const std::int64_t part = time * kWhole / rules.guard.count();
  return seconds(time * part / kWhole / 2);
}

bool can_be_guarded(const OrderRules& rules, const Waiter& waiter) {
  return rules.order == Order::Learned && !waiter.stoppable;
}

}  // namespace

std::int64_t rank_of(const Place& place) {
  constexpr std::int64_t kBeforeAll = std::int64_t{1} << 60;
  return place.guarded ? place.value - kBeforeAll : place.value;
}

std::int64_t expected_hold(const History& history, const Contender& contender) {
  seconds holds = contender.stoppable ? history.time_to_end(contender.signature, contender.served)
                                      : history.run_time(contender.signature);
  if (contender.limit) holds = std::min(holds, *contender.limit);
  return hold_of(contender.signature.parts, holds);
}

std::int64_t hold_of(std::int64_t parts, seconds holds) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() / kWeightOne / 4;
  const std::int64_t weight = square_root(std::clamp(parts, kLeastParts, most) * kWeightOne);
  const std::int64_t max_seconds = std::numeric_limits<std::int64_t>::max() / weight;
  const std::int64_t count = std::clamp<std::int64_t>(holds.count(), 0, max_seconds);
  return std::min(count * weight / kWeightOne, kMaxHold);
}

seconds allowance(const OrderRules& rules, std::int64_t hold, bool stoppable) {
  const std::int64_t bigger =
      octaves_of(std::max(rules.gpus, 1)) - octaves_of(OrderRules::kReferenceGpus);
  const std::int64_t first = (std::int64_t{rules.octave_first} << kOctaveBits) + bigger * 2 / 5;
  const std::int64_t span = std::int64_t{std::max(rules.octaves, 1)} << kOctaveBits;
  const std::int64_t above = std::clamp<std::int64_t>(octaves_of(hold) - first, 0, span);
  // One factor at a time: each product stays small, and rounding down keeps the order.
  std::int64_t given = rules.allowance.count();
  for (int power = 0; power < 3; ++power) given = given * above / span;
  return stoppable ? std::min(seconds(given), rules.max_allowance) : seconds(given);
}

Place place_of(const OrderRules& rules, const Waiter& waiter, seconds allowance, seconds now) {
  if (rules.order == Order::Submission) return {false, waiter.ready.count()};
  if (can_be_guarded(rules, waiter) && waited(waiter, now) >= rules.guard) {
    return {true, (waiter.ready + waiter.served + waiter.penalty).count()};
  }
  const seconds served = waiter.stoppable ? waiter.served : seconds::zero();
  const seconds value =
      waiter.ready + waiter.penalty + served + allowance - impatience(rules, waiter, now);
  return {false, value.count()};
}

Place place_of(const OrderRules& rules,
               const History& history,
               const Contender& contender,
               seconds now) {
  const std::int64_t hold = expected_hold(history, contender);
  return place_of(rules, contender.waiter(), allowance(rules, hold, contender.stoppable), now);
}

std::optional<seconds> guarded_at(const OrderRules& rules, const Waiter& waiter, seconds now) {
  if (!can_be_guarded(rules, waiter)) return std::nullopt;
  if (waited(waiter, now) >= rules.guard) return std::nullopt;
  return waiter.ready + waiter.served + waiter.penalty + rules.guard;
}

}  // namespace gflow::engine
