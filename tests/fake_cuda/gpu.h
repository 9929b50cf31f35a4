// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

/// A GPU that works on a clock: what processes launch waits in a queue of each, and those that have
/// something take turns of a time slice, as contexts of processes do on a GPU without MPS. Nothing
/// runs: what has been done by now is worked out whenever somebody asks.
namespace fake_cuda {

/// Nanoseconds of work. A place in the queue of a process is all the work before it.
using Work = std::uint64_t;
constexpr Work kUntilTold = Work{1} << 50;  ///< that of a kernel which ends when it is told to

/// A kernel that ends when as many as its circle has have begun their next one, as those of a
/// collective do: what it works until then is for nothing.
struct Meeting {
  Work begin = 0;
  Work end = 0;
  std::uint32_t circle = 0;
  std::uint32_t size = 0;
};
constexpr Work kUntilMet = Work{1} << 37;

/// In memory that processes share, all of it under one lock.
class Gpu {
 public:
  static constexpr std::size_t kMaxQueues = 64;
  static constexpr std::size_t kMaxMeetings = 64;

  struct Queue {
    std::int32_t pid = 0;  ///< 0: nobody's
    std::uint64_t start_time = 0;
    std::uint64_t job = 0;  ///< a number of the account that its process has; 0: none
    Work asked = 0;
    Work done = 0;
    Work told = 0;     ///< where a kernel ends that waits to be told; 0: there is none
    Work skipped = 0;  ///< of `done`, what was not worked
    std::array<Meeting, kMaxMeetings> meetings{};  ///< those that are not over, from `first` on
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    [[nodiscard]] Work worked() const { return done - skipped; }
    /// The one that has begun; null if there is none.
    [[nodiscard]] const Meeting* meeting() const;
    void add_meeting(std::uint32_t circle, std::uint32_t size);
    void skip_to(Work place);
    void end_meeting();
    [[nodiscard]] bool has_work() const { return pid != 0 && asked > done; }
  };

  /// Works until this time, in turns of `slice` nanoseconds.
  void play(std::uint64_t until, std::uint64_t slice);
  /// The queue of a process, made if it has none; null if there is no room.
  Queue* queue_of(std::int32_t pid);

  /// Of those who have one, or had.
  std::span<Queue> queues() { return std::span(queues_).first(count_); }
  /// For whoever it was, since there is the machine.
  [[nodiscard]] Work worked() const { return worked_; }
  /// Of that, while processes of several jobs had work, each with an account.
  [[nodiscard]] Work contested() const { return contested_; }

 private:
  /// Who is next if its slice is over; kMaxQueues if nobody has work.
  std::size_t next(std::uint64_t slice);
  [[nodiscard]] bool is_alone() const;
  [[nodiscard]] bool is_contested() const;

  std::array<Queue, kMaxQueues> queues_{};
  std::size_t count_ = 0;
  std::uint64_t time_ = 0;  ///< until when it has worked, of CLOCK_MONOTONIC
  std::uint64_t left_ = 0;  ///< of the slice
  Work worked_ = 0;
  Work contested_ = 0;
  std::size_t turn_ = 0;
};

/// Ends the meetings for which all are there.
void end_meetings(std::span<Gpu> gpus);

}  // namespace fake_cuda
