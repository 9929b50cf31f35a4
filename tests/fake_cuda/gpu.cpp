// SPDX-License-Identifier: Apache-2.0
#include "gpu.h"

#include <algorithm>

namespace fake_cuda {

std::size_t Gpu::next(std::uint64_t slice) {
  if (left_ > 0 && queues_[turn_].has_work()) return turn_;
  for (std::size_t step = 1; step <= kMaxQueues; ++step) {
    const std::size_t at = (turn_ + step) % kMaxQueues;
    if (!queues_[at].has_work()) continue;
    turn_ = at;
    left_ = slice;
    return at;
  }
  return kMaxQueues;
}

bool Gpu::is_alone() const {
  return std::ranges::count_if(queues_, [](const Queue& queue) { return queue.has_work(); }) == 1;
}

void Gpu::play(std::uint64_t until, std::uint64_t slice) {
  while (time_ < until) {
    const std::size_t at = next(slice);
    if (at == kMaxQueues) break;
    Queue& queue = queues_[at];
    const bool has_all = is_alone();
    const std::uint64_t most = has_all ? until - time_ : std::min(left_, until - time_);
    const std::uint64_t length = std::min(queue.asked - queue.done, most);
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
  return found == queues_.end() ? nullptr : &*found;
}

}  // namespace fake_cuda
