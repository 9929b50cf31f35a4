// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

/// A GPU that works on a clock: what processes launch waits in a queue of each, and those that have
/// something take turns of a time slice, as contexts of processes do on a GPU without MPS. Nothing
/// runs: what has been done by now is worked out whenever somebody asks.
namespace fake_cuda {

/// Nanoseconds of work. A place in the queue of a process is all the work before it.
using Work = std::uint64_t;
constexpr Work kUntilTold = Work{1} << 50;  ///< that of a kernel which ends when it is told to

/// In memory that processes share, all of it under one lock.
class Gpu {
 public:
  static constexpr std::size_t kMaxQueues = 64;

  struct Queue {
    std::int32_t pid = 0;  ///< 0: nobody's
    std::uint64_t start_time = 0;
    Work asked = 0;
    Work done = 0;
    Work told = 0;  ///< where a kernel ends that waits to be told; 0: there is none
    [[nodiscard]] bool has_work() const { return pid != 0 && asked > done; }
  };

  /// Works until this time, in turns of `slice` nanoseconds.
  void play(std::uint64_t until, std::uint64_t slice);
  /// The queue of a process, made if it has none; null if there is no room.
  Queue* queue_of(std::int32_t pid);

  std::array<Queue, kMaxQueues>& queues() { return queues_; }
  /// For whoever it was, since there is the machine.
  [[nodiscard]] Work worked() const { return worked_; }

 private:
  /// Who is next if its slice is over; kMaxQueues if nobody has work.
  std::size_t next(std::uint64_t slice);
  [[nodiscard]] bool is_alone() const;

  std::array<Queue, kMaxQueues> queues_{};
  std::uint64_t time_ = 0;  ///< until when it has worked, of CLOCK_MONOTONIC
  std::uint64_t left_ = 0;  ///< of the slice
  Work worked_ = 0;
  std::size_t turn_ = 0;
};

}  // namespace fake_cuda
