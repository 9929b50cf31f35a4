// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>

#include "engine/history.h"

/// Who goes first among jobs of one priority.
///
/// A job that will give its devices back soon goes before one that will hold many for long; how
/// soon is what History says. Waiting counts against that: the place of a job is the time it became
/// ready plus an allowance that grows with what it is expected to hold, so of two jobs the one
/// expected to hold less goes first, unless the other has waited longer by more than the difference
/// of their allowances. Waiting counts the more the longer it takes: at first once, twice just
/// before the guard. The allowance is bounded, so that nobody waits without end.
///
/// Jobs of one kind (the same owner, request, program, class of limit) always stand in the order in
/// which they became ready: what is learned moves them all together, and all that wait are compared
/// by what is known now.
namespace gflow::engine {

/// Persisted in configuration files by name.
enum class Order {
  Submission,  ///< first come, first served
  Learned,     ///< as above
};

struct OrderRules {
  Order order = Order::Learned;
  /// Allowance of a job expected to hold one GPU for 2^(octave_first + octaves) seconds: it grows
  /// with the cube of the octaves above 2^octave_first.
  std::chrono::seconds allowance{1'800'000};
  int octave_first = 6;
  int octaves = 15;
  /// How many GPUs there are. On a bigger machine the same job keeps fewer others waiting, so its
  /// allowance is less: by two fifths of an octave for each doubling beyond kReferenceGpus.
  int gpus = kReferenceGpus;
  static constexpr int kReferenceGpus = 16;
  /// The allowance of jobs that can be stopped to make room is never more than this: their
  /// expectation grows as they are served, and they must not fall back for ever.
  std::chrono::seconds max_allowance{1'000'000};
  /// A job that cannot be stopped, and waited so long, goes before all that are not guarded.
  std::chrono::seconds guard{9 * 86'400};

  friend bool operator==(const OrderRules&, const OrderRules&) = default;
};

/// Smaller is earlier.
struct Place {
  bool guarded = false;
  std::int64_t value = 0;  ///< seconds on the clock of Contender::ready

  friend bool operator==(const Place&, const Place&) = default;
  friend std::strong_ordering operator<=>(const Place& a, const Place& b) {
    if (a.guarded != b.guarded) return b.guarded <=> a.guarded;
    return a.value <=> b.value;
  }
};

/// The same order as one number.
[[nodiscard]] std::int64_t rank_of(const Place& place);

/// What of a job moves its place as time passes. All jobs count on one clock, which goes on over
/// restarts.
struct Waiter {
  std::chrono::seconds ready{0};    ///< since when it may start, as far as it is concerned
  std::chrono::seconds served{0};   ///< run time of all its attempts so far
  std::chrono::seconds penalty{0};  ///< how far its owner stands back: see fair_share.h
  bool stoppable = false;           ///< may be stopped to make room, and goes on later
};

/// What of a job decides its place: a Waiter, and what it is expected to hold.
struct Contender {
  std::chrono::seconds ready{0};   ///< since when it may start, as far as it is concerned
  std::chrono::seconds served{0};  ///< run time of all its attempts so far
  Signature signature;
  std::optional<std::chrono::seconds> limit;
  bool stoppable = false;           ///< may be stopped to make room, and goes on later
  std::chrono::seconds penalty{0};  ///< how far its owner stands back: see fair_share.h

  [[nodiscard]] Waiter waiter() const { return {ready, served, penalty, stoppable}; }
};

/// What a job is expected to hold: GPU-seconds, the GPUs counted by their square root, since a job
/// that needs many at once has to wait longer for them anyway.
[[nodiscard]] std::int64_t expected_hold(const History& history, const Contender& contender);
/// The same of a job that holds so many parts of GPUs for so long.
[[nodiscard]] std::int64_t hold_of(std::int64_t parts, std::chrono::seconds holds);

[[nodiscard]] std::chrono::seconds allowance(const OrderRules& rules,
                                             std::int64_t hold,
                                             bool stoppable);

/// The place of a waiting job, or of a running one as if it had to queue now, with its allowance.
[[nodiscard]] Place place_of(const OrderRules& rules,
                             const Waiter& waiter,
                             std::chrono::seconds allowance,
                             std::chrono::seconds now);
/// The same, its allowance by what it is expected to hold.
[[nodiscard]] Place place_of(const OrderRules& rules,
                             const History& history,
                             const Contender& contender,
                             std::chrono::seconds now);

/// When the place of a job that goes on waiting becomes guarded; nothing if it never does, or is.
[[nodiscard]] std::optional<std::chrono::seconds> guarded_at(const OrderRules& rules,
                                                             const Waiter& waiter,
                                                             std::chrono::seconds now);

}  // namespace gflow::engine
