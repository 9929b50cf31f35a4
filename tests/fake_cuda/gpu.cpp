// SPDX-License-Identifier: Apache-2.0
#include "gpu.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace fake_cuda {

const Meeting* Gpu::Queue::meeting() const {
  const Meeting& next = meetings[first % kMaxMeetings];
  return pid != 0 && count > 0 && done > next.begin ? &next : nullptr;
}

void Gpu::Queue::add_meeting(std::uint32_t circle, std::uint32_t size) {
  if (count == kMaxMeetings) std::abort();
  meetings[(first + count++) % kMaxMeetings] = {asked, asked + kUntilMet, circle, size};
  asked += kUntilMet;
}

void Gpu::Queue::skip_to(Work place) {
  if (place <= done) return;
  skipped += place - done;
  done = place;
}

void Gpu::Queue::end_meeting() {
  skip_to(meetings[first % kMaxMeetings].end);
  ++first;
  --count;
}

void end_meetings(std::span<Gpu> gpus) {
  constexpr std::size_t kMaxCircles = 64;
  std::array<std::uint32_t, kMaxCircles> there{};
  const auto for_each = [&](auto act) {
    for (Gpu& gpu : gpus) {
      for (Gpu::Queue& queue : gpu.queues()) {
        if (const Meeting* const meeting = queue.meeting()) act(queue, *meeting);
      }
    }
  };
  for_each([&](Gpu::Queue&, const Meeting& meeting) { ++there[meeting.circle % kMaxCircles]; });
  for_each([&](Gpu::Queue& queue, const Meeting& meeting) {
    if (there[meeting.circle % kMaxCircles] >= meeting.size) queue.end_meeting();
  });
}

std::size_t Gpu::next(std::uint64_t slice) {
  if (left_ > 0 && queues_[turn_].has_work()) return turn_;
  for (std::size_t step = 1; step <= count_; ++step) {
    const std::size_t at = (turn_ + step) % count_;
    if (!queues_[at].has_work()) continue;
    turn_ = at;
    left_ = slice;
    return at;
  }
  return kMaxQueues;
}

bool Gpu::is_alone() const {
  const auto queues = std::span(queues_).first(count_);
  return std::ranges::count_if(queues, [](const Queue& queue) { return queue.has_work(); }) == 1;
}

bool Gpu::is_contested() const {
  std::uint64_t first = 0;
  for (const Queue& queue : std::span(queues_).first(count_)) {
    if (!queue.has_work() || queue.job == 0) continue;
    if (first != 0 && queue.job != first) return true;
    first = queue.job;
  }
  return false;
}

void Gpu::play(std::uint64_t until, std::uint64_t slice) {
  while (time_ < until) {
    const std::size_t at = next(slice);
    if (at == kMaxQueues) break;
    Queue& queue = queues_[at];
    const bool has_all = is_alone();
    const std::uint64_t most = has_all ? until - time_ : std::min(left_, until - time_);
    const std::uint64_t length = std::min(queue.asked - queue.done, most);
    if (!has_all && is_contested()) contested_ += length;
    queue.done += length;
    worked_ += length;
    time_ += length;
    left_ = has_all ? slice : left_ - length;
  }
  time_ = std::max(time_, until);
}

Gpu::Queue* Gpu::queue_of(std::int32_t pid) {
  const auto is_its = [pid](const Queue& queue) { return queue.pid == pid; };
  auto found = std::ranges::find_if(queues_, is_its);
  if (found == queues_.end()) {
    found = std::ranges::find_if(queues_, [](const Queue& queue) { return queue.pid == 0; });
  }
  if (found == queues_.end()) return nullptr;
  count_ = std::max(count_, static_cast<std::size_t>(found - queues_.begin()) + 1);
  return &*found;
}

}  // namespace fake_cuda
