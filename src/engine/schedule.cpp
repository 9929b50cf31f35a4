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
/// cannot start is left out for the rest of the pass, since what is free only shrinks within it,
/// but for jobs that were told to stand still: then it starts from the beginning.
void Turn::schedule() {
  forget_room();
  Places places;
  std::priority_queue<Candidate> candidates;
  for (const auto& [shape, keys] : index_.ready) candidates.push({*keys.begin(), &shape});
  std::vector<JobId> standing = standing_in_order();

  while (!candidates.empty()) {
    const auto [key, shape_ref] = candidates.top();
    const Shape shape = *shape_ref;
    candidates.pop();
    resume_before(key, standing, places);
    auto there = index_.choose(shape.demand, {});
    if (!there && make_room(key.id, places)) there = index_.choose(shape.demand, {});
    if (!there) {
      places.keep_head(index_, key.id);
      continue;
    }
    if (!pass(places, shape, *there)) continue;
    start(key.id, *there);
    const auto rest = index_.ready.find(shape);
    if (rest != index_.ready.end()) candidates.push({*rest->second.begin(), &rest->first});
  }
  resume_before(std::nullopt, standing, places);
  index_.head = places.head;
  index_.first_waiting = places.first;
}

/// Whether the job may start before those whose places are kept: where it would best go, or
/// elsewhere.
bool Turn::pass(Places& places, const Shape& shape, Chosen& there) {
  if (places.let_pass(index_, shape, there.placements)) return true;
  auto elsewhere = index_.choose(shape.demand, places.node_list());
  if (!elsewhere || !places.let_pass(index_, shape, elsewhere->placements)) return false;
  there = std::move(*elsewhere);
  return true;
}

void Turn::start(JobId id, const Chosen& there) {
  index_.change(id, [&](Job& job) {
    const int requeues = std::get<Queued>(job.state).requeues;
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
    job.state = Starting{std::move(attempt), std::nullopt, requeues};
  });
  saved(id);
  try_node(id, attempt_of(*index_.find(id))->allocation.node);
  effects_.emplace_back(effect::Launch{id, index_.find(id)->attempts});
}

}  // namespace gflow::engine
