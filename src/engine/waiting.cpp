// SPDX-License-Identifier: Apache-2.0
#include "engine/waiting.h"

#include <algorithm>

namespace gflow::engine {
namespace {

/// The jobs of a line from one on.
struct Rest {
  QueueKey place;  ///< of its first
  Front front;
  RunSet<QueueKey>::Iterator next;

  /// So that a heap gives the first in the queue.
  friend bool operator<(const Rest& a, const Rest& b) { return b.place < a.place; }
};

/// A user's limit of jobs that hold nothing is no matter of room, and neither is who a gang waits
/// for.
bool needs_more_than_room(const Index& index, const Waiting& job) {
  if (job.shape.gang != kNoGang) return true;
  const std::int64_t parts = job.line->contender.signature.parts;
  return parts == 0 && index.is_at_user_limit(index.find(job.job)->spec);
}

Waiting waiting_of(const Index& index, const Rest& rest) {
  Waiting job{.job = rest.front.first.id,
              .key = rest.front.first,
              .shape = index.fronts.shape(rest.front.shape),
              .line = rest.front.line,
              .keeps_from = keeps_from(index, rest.front.first)};
  job.needs_more = needs_more_than_room(index, job);
  return job;
}

}  // namespace

MonoTime keeps_from(const Index& index, const QueueKey& key) {
  if (index.policy.order.order == Order::Submission) return MonoTime::min();
  return index.mono_at(std::chrono::seconds(key.rank) + index.policy.keep_after);
}

std::vector<Waiting> first_waiting(Index& index, std::size_t most) {
  index.expect_anew();
  std::vector<Rest> heap;
  heap.reserve(index.fronts.all().size());
  for (const Front& front : index.fronts.all()) {
    heap.push_back({index.place_of(front), front, front.line->jobs.begin()});
  }
  std::make_heap(heap.begin(), heap.end());
  std::vector<Waiting> first;
  while (!heap.empty() && first.size() < most) {
    std::pop_heap(heap.begin(), heap.end());
    Rest& rest = heap.back();
    first.push_back(waiting_of(index, rest));
    if (++rest.next == rest.front.line->jobs.end()) {
      heap.pop_back();
      continue;
    }
    rest.front.first = *rest.next;
    rest.place = index.place_of(rest.front);
    std::push_heap(heap.begin(), heap.end());
  }
  return first;
}

}  // namespace gflow::engine
