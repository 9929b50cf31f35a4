// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

/// What processes ask of the driver's thread of another one, in memory that all of them share. All
/// zeros: there is no such thread.
namespace fake_cuda {

enum class Wish : std::int32_t { None, Lock, Checkpoint, Restore, Unlock };

struct Request {
  Wish wish = Wish::None;
  std::uint32_t timeout_ms = 0;  ///< of Lock; 0: none
  /// Of Restore: onto which GPUs of the machine, by those it was on; empty: where it was.
  struct Pair {
    std::int32_t from = 0;
    std::int32_t to = 0;
  };
  std::array<Pair, 16> pairs{};
  std::uint32_t pair_count = 0;
};

/// One request is under way at a time, `asked` - `answered` of them. What was asked is done also if
/// who asked is gone meanwhile.
struct Requests {
  std::int32_t thread = 0;  ///< who does it
  std::int32_t state = 0;   ///< abi::ProcessState
  Request request;
  std::uint32_t asked = 0;                ///< a futex; changes under the lock of the machine
  std::uint32_t answered = 0;             ///< a futex
  std::uint32_t waiting = 0;              ///< who asks next; under the lock of the machine
  std::array<std::int32_t, 4> results{};  ///< of the last, by number
};

/// Waits until it is no longer `seen`, or for some milliseconds: who changes it may die before.
void wait_for_change(std::uint32_t& word, std::uint32_t seen);
[[nodiscard]] std::uint32_t value_of(std::uint32_t& word);
void change(std::uint32_t& word, std::uint32_t value);

}  // namespace fake_cuda
