// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <queue>

#include "engine/backfill.h"
#include "engine/choose.h"
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
    auto there = index_.choose(shape.demand, {});
    if (!there) {
      if (!kept) kept = reserve(index_, key.id);
      continue;
    }
    if (kept && !pass(*kept, shape, *there)) continue;
    start(key.id, *there);
    const auto rest = index_.ready.find(shape);
    if (rest != index_.ready.end()) candidates.push({*rest->second.begin(), &rest->first});
  }
  if (kept) {
    index_.head = kept->head;
  } else {
    index_.head.reset();
  }
}

/// Whether the job may start before the one whose place is kept: where it would best go, or
/// elsewhere.
bool Turn::pass(Reservation& kept, const Shape& shape, Chosen& there) {
  Passage passage = kept.passage(index_, shape, there.placements);
  if (passage == Passage::Blocked) {
    auto elsewhere = index_.choose(shape.demand, kept.node_list());
    if (!elsewhere) return false;
    there = std::move(*elsewhere);
    passage = kept.passage(index_, shape, there.placements);
  }
  if (passage == Passage::FromSpare) kept.take_spare(index_, shape.demand, there.placements);
  return passage != Passage::Blocked;
}

void Turn::start(JobId id, const Chosen& there) {
  index_.change(id, [&](Job& job) {
    const int failures = std::get<Queued>(job.state).launch_failures;
    ++job.attempts;
    Attempt attempt{.number = job.attempts,
                    .allocation = {},
                    .peers = {},
                    .placed_because = there.because,
                    .started = index_.now.wall,
                    .started_mono = index_.now.mono,
                    .boot_id = index_.boot_id};
    for (const placement::Placement& placement : there.placements) {
      attempt.peers.push_back({index_.ledger.node(placement.node).name, placement.devices, {}});
    }
    attempt.allocation = std::move(attempt.peers.front());
    attempt.peers.erase(attempt.peers.begin());
    attempt.allocation.cpus = choose_cpus(index_, job.spec.request, attempt.allocation.gpus);
    job.state = Starting{std::move(attempt), std::nullopt, failures};
  });
  saved(id);
  effects_.emplace_back(effect::Launch{id, index_.find(id)->attempts});
}

}  // namespace gflow::engine
