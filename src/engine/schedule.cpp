// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <queue>

#include "engine/backfill.h"
#include "engine/turn.h"

namespace gflow::engine {
namespace {

/// The first job of a shape, ordered so that a priority queue gives the best one.
struct Candidate {
  QueueKey key;
  const Shape* shape;

  friend bool operator<(const Candidate& a, const Candidate& b) { return b.key < a.key; }
};

}  // namespace

/// One pass over the queue: best first, one candidate per shape at a time. A shape whose first job
/// cannot start is left out for the rest of the pass, since what is free only shrinks within it.
void Turn::schedule() {
  std::priority_queue<Candidate> candidates;
  for (const auto& [shape, keys] : index_.ready) candidates.push({*keys.begin(), &shape});

  std::optional<Reservation> kept;
  while (!candidates.empty()) {
    const auto [key, shape_ref] = candidates.top();
    const Shape shape = *shape_ref;
    candidates.pop();
    const Amounts asks = amounts_of(shape);
    if (!index_.free().covers(asks)) {
      if (!kept) kept = reserve(index_, key.id);
      continue;
    }
    const Passage passage = kept ? kept->passage(index_, shape) : Passage::InTime;
    if (passage == Passage::Blocked) continue;
    if (passage == Passage::FromSpare) kept->take_spare(asks);
    start(key.id);
    const auto rest = index_.ready.find(shape);
    if (rest != index_.ready.end()) candidates.push({*rest->second.begin(), &rest->first});
  }
  if (kept) {
    index_.head = kept->head;
  } else {
    index_.head.reset();
  }
}

void Turn::start(JobId id) {
  index_.change(id, [this](Job& job) {
    const int failures = std::get<Queued>(job.state).launch_failures;
    std::vector<int> gpus = index_.free_gpus();
    gpus.resize(static_cast<std::size_t>(job.spec.request.gpus));
    ++job.attempts;
    job.state = Starting{Attempt{.number = job.attempts,
                                 .allocation = {.node = {}, .gpus = std::move(gpus), .cpus = {}},
                                 .started = index_.now.wall,
                                 .started_mono = index_.now.mono,
                                 .boot_id = index_.boot_id},
                         std::nullopt,
                         failures};
  });
  saved(id);
  effects_.emplace_back(effect::Launch{id, index_.find(id)->attempts});
}

}  // namespace gflow::engine
