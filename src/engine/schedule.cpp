// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "engine/backfill.h"
#include "engine/choose.h"
#include "engine/launch.h"
#include "engine/step_internal.h"

namespace gflow::engine {
namespace {

/// The first job of a kind.
struct Candidate {
  QueueKey place;
  Line* line = nullptr;

  /// So that a heap gives the first in the queue.
  friend bool operator<(const Candidate& a, const Candidate& b) { return b.place < a.place; }
};

/// All that may start, one candidate per kind, those of one shape together: a pass costs what there
/// is of kinds, not of jobs.
class Candidates {
 public:
  explicit Candidates(Index& index) : index_(index) {
    for (auto& [shape, lines] : index.ready) {
      Shaped shaped{shape, {}};
      shaped.kinds.reserve(lines.size());
      for (auto& [kind, line] : lines) shaped.kinds.push_back({index.place_of(line), &line});
      std::make_heap(shaped.kinds.begin(), shaped.kinds.end());
      shapes_.push_back(std::move(shaped));
    }
    std::make_heap(shapes_.begin(), shapes_.end());
  }

  [[nodiscard]] bool empty() const { return shapes_.empty(); }
  /// Of all the first. A place that has moved back since it was asked for is put right before.
  [[nodiscard]] const Candidate& first() {
    while (true) {
      const Candidate& best = shapes_.front().kinds.front();
      const QueueKey place = index_.place_of(*best.line);
      if (!(best.place < place)) return best;
      move_first(place);
    }
  }
  [[nodiscard]] const Shape& shape() const { return shapes_.front().shape; }

  /// No more of the first one's kind in this pass.
  void drop_kind() {
    std::vector<Candidate>& kinds = shapes_.front().kinds;
    std::pop_heap(kinds.begin(), kinds.end());
    kinds.pop_back();
    settle_first();
  }
  /// No more of its shape.
  void drop_shape() {
    shapes_.front().kinds.clear();
    settle_first();
  }
  /// Starts the first one by `start`, and has the next of its kind stand for it.
  template <typename Start>
  void start_first(Start start) {
    Line& line = *shapes_.front().kinds.front().line;
    const bool last = line.jobs.size() == 1;
    start(line.jobs.begin()->id);
    if (last) {
      drop_kind();
    } else {
      move_first(index_.place_of(line));
    }
    if (index_.fair.settle_again()) compare_again();
  }

 private:
  struct Shaped {
    Shape shape;
    std::vector<Candidate> kinds;  ///< a heap

    friend bool operator<(const Shaped& a, const Shaped& b) {
      return a.kinds.front() < b.kinds.front();
    }
  };
  void move_first(const QueueKey& place) {
    std::vector<Candidate>& kinds = shapes_.front().kinds;
    std::pop_heap(kinds.begin(), kinds.end());
    kinds.back().place = place;
    std::push_heap(kinds.begin(), kinds.end());
    settle_first();
  }
  void settle_first() {
    std::pop_heap(shapes_.begin(), shapes_.end());
    if (shapes_.back().kinds.empty()) {
      shapes_.pop_back();
    } else {
      std::push_heap(shapes_.begin(), shapes_.end());
    }
  }
  void compare_again() {
    for (Shaped& shaped : shapes_) {
      for (Candidate& one : shaped.kinds) one.place = index_.place_of(*one.line);
      std::make_heap(shaped.kinds.begin(), shaped.kinds.end());
    }
    std::make_heap(shapes_.begin(), shapes_.end());
  }

  Index& index_;
  std::vector<Shaped> shapes_;  ///< a heap of those that have a candidate left
};

}  // namespace

/// One pass over the queue, best first. A shape whose first job does not fit is left out for the
/// rest of the pass, since what is free only shrinks within it, but for jobs that are
/// suspended: then it starts from the beginning. A kind that may not pass is left out alone:
/// another may be expected to end sooner.
void Step::schedule() {
  index_.fair.settle(std::chrono::floor<std::chrono::seconds>(index_.lived()));
  Places places;
  Candidates candidates(index_);
  std::vector<JobId> suspended = suspended_in_order();

  while (!candidates.empty()) {
    const Candidate first = candidates.first();
    const JobId id = first.line->jobs.begin()->id;
    if (index_.is_at_user_limit(index_.find(id)->spec)) {
      candidates.drop_kind();
      continue;
    }
    const Passer passer{candidates.shape(), first.place.priority, first.line->run_time};
    resume_before(first.place, suspended, places);
    auto there = index_.choose(passer.shape.demand, {});
    if (!there && preempt_for(id, places)) there = index_.choose(passer.shape.demand, {});
    if (!there) {
      places.block(index_, id);
      candidates.drop_shape();
    } else if (pass(places, passer, *there)) {
      candidates.start_first([&](JobId starts) { start(starts, *there); });
    } else {
      candidates.drop_kind();
    }
  }
  resume_before(std::nullopt, suspended, places);
  index_.head = places.head();
  index_.first_waiting = places.first();
}

/// Whether the job may start before those whose places are kept: where it would best go, or
/// elsewhere.
bool Step::pass(Places& places, const Passer& passer, Chosen& there) {
  if (places.let_pass(index_, passer, there.placements)) return true;
  auto elsewhere = index_.choose(passer.shape.demand, places.nodes_kept(passer));
  if (!elsewhere || !places.let_pass(index_, passer, elsewhere->placements)) return false;
  there = std::move(*elsewhere);
  return true;
}

void Step::start(JobId id, const Chosen& there) {
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
      attempt.peers.push_back({index_.ledger.node(placement.node).name,
                               placement.devices,
                               choose_cpus(index_, job.spec.request, placement)});
    }
    attempt.allocation = std::move(attempt.peers.front());
    attempt.peers.erase(attempt.peers.begin());
    job.state = Starting{std::move(attempt), std::nullopt, requeues};
  });
  saved(id);
  index_.put_nodes_used_by(id, *attempt_of(*index_.find(id)));
  try_node(id, attempt_of(*index_.find(id))->allocation.node);
  effects_.emplace_back(
      effect::Launch{std::make_shared<const LaunchOrder>(launch_order(index_, *index_.find(id)))});
}

}  // namespace gflow::engine
