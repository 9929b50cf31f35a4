// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// How long things take that keepers of gates do, in nanoseconds.
namespace gflow::interpose {

constexpr std::uint64_t kMicrosecond = 1'000;
constexpr std::uint64_t kMillisecond = 1'000 * kMicrosecond;
/// How long a process has the device before it is another's turn: with the whole of it; who has a
/// part has it shorter, where others want it, as one that wants it again after a moment would wait
/// long for those with little.
constexpr std::uint64_t kTurn = 20 * kMillisecond;
constexpr std::uint64_t kShortestTurn = 4 * kMillisecond;
constexpr std::uint64_t kRemembered = 100 * kMillisecond;
/// Between looks at whether all is done.
constexpr std::uint64_t kLook = 100 * kMicrosecond;
/// Between looks at what is still to be done before others have their turn.
constexpr std::uint64_t kLastLook = 20 * kMicrosecond;
/// It stays open for as long without work, if nobody else stands before it.
constexpr std::uint64_t kIdle = kMillisecond;
/// Who is first in line and does not take a device that is free for so long is passed.
constexpr std::uint64_t kPassed = 20 * kMillisecond;
constexpr std::uint64_t kPatience = 1'000 * kMillisecond;
/// Between looks at a share, which may be changed.
constexpr std::uint64_t kShareLook = 50 * kMillisecond;

[[nodiscard]] std::uint64_t now();  ///< of CLOCK_MONOTONIC
void sleep_for(std::uint64_t length);

/// The time for which somebody looked, in nanoseconds: between two looks no more of it passes than
/// a moment, however long the process stood, as one that was stopped. What others did not do in
/// that time, they may not have been able to. One thread.
class LookedTime {
 public:
  /// A look, at this time of CLOCK_MONOTONIC.
  std::uint64_t at(std::uint64_t time);

 private:
  std::uint64_t looked_at_ = 0;
  std::uint64_t passed_ = 0;
};

/// A thread of the process that runs `keep` with `argument` for ever and gets no signals, and asks
/// the driver without disturbing captures. False if there is none to be had.
[[nodiscard]] bool start_keeper_thread(void* (*keep)(void*), void* argument);

/// Lengths at odds with those of work that comes and goes at an even pace, which would be seen each
/// time otherwise, or never. One thread.
class OddPace {
 public:
  /// Half of it to one and a half.
  [[nodiscard]] std::uint64_t about(std::uint64_t length);

 private:
  std::uint64_t random_ = 0;
};

}  // namespace gflow::interpose
