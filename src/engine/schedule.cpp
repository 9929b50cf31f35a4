// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "engine/backfill.h"
#include "engine/candidates.h"
#include "engine/choose.h"
#include "engine/launch.h"
#include "engine/lending.h"
#include "engine/step_internal.h"

namespace gflow::engine {
namespace {

/// Whether the place of a line's first job could be kept against all. True for more than those.
bool could_keep_place(const Index& index, const Places& places, const Front& front) {
  if (index.is_room_made(front.first.id)) return true;
  if (!places.could_keep_one_more(index)) return false;
  if (index.policy.order.order == Order::Submission) return true;
  const auto waited = index.lived() - std::chrono::seconds(front.first.rank);
  const Shape& shape = index.fronts.shape(front.shape);
  return waited >= index.policy.keep_after || shape.gang != kNoGang ||
         index.ledger.demand(shape.demand).nodes > 1;
}

bool is_at_user_limit(const Index& index, const Candidate& first) {
  const Signature& signature = first.line->contender.signature;
  const GangNumber gang = index.fronts.shape(first.shape).gang;
  if (gang != kNoGang) return index.is_at_limit(*index.find(first.job()));
  if (signature.parts > 0) return signature.parts > index.gpu_limit_left(signature.uid);
  const placement::Demand& demand = index.ledger.demand(index.fronts.shape(first.shape).demand);
  return demand.gpus == 0 && demand.milli_cpus == 0 &&
         index.is_at_user_limit(index.find(first.job())->spec);
}

/// Whether no room helps it now.
bool is_kept_from_queue(const Index& index, const Candidate& first) {
  const GangNumber gang = index.fronts.shape(first.shape).gang;
  return index.gangs.start(gang) == GangStart::NotYet || is_at_user_limit(index, first);
}

/// Jobs for which there is no room: of them only the places matter, which may be kept. Told to
/// Places as far as that makes a difference, and no further.
class Blocked {
 public:
  Blocked(Index& index, Places& places) : index_(index), places_(places), lines_(index) {}
  void add(const Front& front) { lines_.add(front); }
  void put_in_order() { lines_.put_in_order(); }
  void compare_again() { lines_.compare_again(); }

  /// Those ahead of this place.
  void tell_before(const QueueKey& place) {
    int skipped = 0;
    while (!lines_.empty() && lines_.first().place < place) {
      if (!tell_first() && ++skipped == kSkippedSingly && bulks_ < kMaxBulks) {
        ++bulks_;
        lines_.drop_if([&](const Candidate& one) {
          return one.place < place && !could_keep(index_.fronts.of(*one.line));
        });
      }
    }
  }
  /// The rest, until it is known for whom others wait.
  void tell_rest() {
    bool dropped = false;
    while (!lines_.empty() && !(places_.first() && places_.head())) {
      if (tell_first() || std::exchange(dropped, true)) continue;
      lines_.drop_if(
          [&](const Candidate& one) { return !could_keep(index_.fronts.of(*one.line)); });
    }
  }

 private:
  static constexpr int kSkippedSingly = 32;
  /// To drop many costs as much as there are.
  static constexpr int kMaxBulks = 8;

  /// False if it made no difference.
  bool tell_first() {
    const Candidate& first = lines_.first();
    if (is_kept_from_queue(index_, first)) {
      lines_.drop_line();
      return true;
    }
    const bool matters = !places_.is_full() || could_keep(index_.fronts.of(*first.line));
    if (matters) places_.block(index_, first.job());
    lines_.drop_shape();
    return matters;
  }
  [[nodiscard]] bool could_keep(const Front& front) const {
    return could_keep_place(index_, places_, front);
  }

  Index& index_;
  Places& places_;
  Candidates lines_;
  int bulks_ = 0;
};

/// What does not fit may have room made for it, and lets those go on who come before it: then it is
/// looked at, too.
void tell_apart(const Index& index, Candidates& candidates, Blocked& blocked) {
  const bool all = !index.suspended.empty() || index.may_make_room();
  for (const Front& front : index.fronts.all()) {
    if (all || !index.fronts.is_full(front.shape)) {
      candidates.add(front);
    } else {
      blocked.add(front);
    }
  }
  candidates.put_in_order();
  blocked.put_in_order();
}

}  // namespace

void Step::schedule() {
  settle_slices();
  index_.fair.settle(std::chrono::floor<std::chrono::seconds>(index_.lived()));
  index_.fronts.find_room(index_.ledger);
  // Also where none gets so far that room is looked for: what is placed next does not hang on that.
  if (!index_.ready.empty()) index_.placer->catch_up(index_.ledger);
  const auto look = [this] {
    if (index_.fronts.open() > 0 || !index_.suspended.empty() || move_ || might_preempt()) {
      look_at_queue();
    } else {
      index_.awaited.reset();
    }
    index_.fronts.pass_ended(index_.ledger);
  };
  look();
  while (cut_slices()) {
    index_.fronts.find_room(index_.ledger);
    look();
  }
}

/// One pass over the queue, best first. A shape whose first job does not fit is left out for the
/// rest of the pass, since what is free only shrinks within it, but for jobs that are suspended:
/// then it starts from the beginning. It is left out of later passes, too, until something is given
/// back where it would fit (Fronts); only places are kept for it. A line that may not pass is left
/// out alone: another may be expected to end sooner.
///
/// False where those that may not pass are to be looked at again. Either what started took its user
/// to the limit of GPUs that a job of his needs whose place was kept: that is no one's any more. Or
/// a suspended job went on, and what it holds is free later than was expected of one that stands.
bool Step::look_through_queue() {
  const std::uint64_t starts = starts_;
  const std::uint64_t resumes = resumes_;
  index_.expect_anew();
  ++index_.rounds;
  Places places;
  places.keep_paused(index_);
  Candidates candidates(index_);
  Blocked blocked(index_, places);
  tell_apart(index_, candidates, blocked);
  std::vector<JobId> suspended = suspended_in_order();

  while (!candidates.empty()) {
    const Candidate first = candidates.first();
    blocked.tell_before(first.place);
    if (is_kept_from_queue(index_, first)) {
      keep_out(first, candidates);
      continue;
    }
    resume_before(first.place, suspended, places);
    look_at(first, candidates, places);
    if (index_.fair.settle_again()) {
      candidates.compare_again();
      blocked.compare_again();
    }
  }
  blocked.tell_rest();
  resume_before(std::nullopt, suspended, places);
  if (move_) decide_move(places);
  index_.awaited = Index::Awaited{places.head(), places.first()};
  if (resumes_ != resumes) return false;
  return starts_ == starts || !places.has_one_at_limit(index_);
}

/// Ends: whom room was made for once does not have it made again at the same moment.
void Step::look_at_queue() {
  while (!look_through_queue()) {
  }
}

void Step::keep_out(const Candidate& first, Candidates& candidates) {
  const GangNumber gang = index_.fronts.shape(first.shape).gang;
  if (index_.gangs.start(gang) == GangStart::NotYet) index_.fronts.set_gang_full(gang);
  forget_preemption(first.job());
  candidates.drop_line();
}

/// Starts the first job of a line, or its gang, where there is room; else leaves out for this pass
/// whoever there is none for either.
void Step::look_at(const Candidate& first, Candidates& candidates, Places& places) {
  const Shape& shape = index_.fronts.shape(first.shape);
  if (index_.gangs.start(shape.gang) == GangStart::Together) {
    return look_at_gang(first, shape.gang, candidates, places);
  }
  const Signature& signature = first.line->contender.signature;
  const Passer passer{.shape = shape,
                      .priority = first.place.priority,
                      .run_time = first.line->run_time,
                      .uid = signature.uid,
                      .parts = signature.parts};
  if (start_near(first, passer, candidates, places)) return;
  auto there = room_for(first, passer.shape.demand, places);
  if (!there) {
    tell_blocked(first, places);
    index_.fronts.set_full(first.shape);
    return candidates.drop_shape();
  }
  if (!pass(places, passer, *there)) return candidates.drop_line();
  start_first(first, *there, candidates);
}

void Step::start_first(const Candidate& first, const Chosen& there, Candidates& candidates) {
  const bool is_last = first.line->jobs.size() == 1;
  start(first.job(), there);
  if (is_last) {
    candidates.drop_line();
  } else {
    candidates.put_again();
  }
}

void Step::tell_blocked(const Candidate& first, Places& places) {
  if (places.is_full() && !could_keep_place(index_, places, index_.fronts.of(*first.line))) return;
  places.block(index_, first.job());
}

/// Where the first of a line could go, if room for it has to be made.
std::optional<Chosen> Step::room_for(const Candidate& first,
                                     placement::DemandIndex demand,
                                     Places& places) {
  if (!index_.fronts.is_full(first.shape)) {
    ++index_.looks;
    if (auto there = index_.choose(demand, {})) return there;
  }
  if (!preempt_for(first.job(), places)) return std::nullopt;
  return index_.choose(demand, {});
}

/// Of a pass that had nothing to decide, nothing but this is to be known.
const Index::Awaited& Index::find_awaited() {
  if (awaited) return *awaited;
  expect_anew();
  Places places;
  Blocked blocked(*this, places);
  for (const Front& front : fronts.all()) blocked.add(front);
  blocked.put_in_order();
  blocked.tell_rest();
  awaited = Awaited{places.head(), places.first()};
  return *awaited;
}

/// Whether the job may start before those whose places are kept: where it would best go, or
/// elsewhere among these nodes.
bool Step::pass(Places& places, const Passer& passer, Chosen& there, Area among) {
  if (places.let_pass(index_, passer, there.placements)) return true;
  auto elsewhere = index_.choose(passer.shape.demand, places.nodes_kept(passer), among);
  if (!elsewhere || !places.let_pass(index_, passer, elsewhere->placements)) return false;
  there = std::move(*elsewhere);
  return true;
}

void Step::start(JobId id, const Chosen& there) {
  ++starts_;
  index_.change(id, [&](Job& job) {
    const Queued& queued = std::get<Queued>(job.state);
    const int requeues = queued.requeues;
    const auto preemption_at = queued.preemption_at;
    ++job.attempts;
    Attempt attempt{.number = job.attempts,
                    .allocation = {},
                    .peers = {},
                    .placed_because = there.because,
                    .started = index_.now.wall,
                    .started_mono = index_.now.mono,
                    .boot_id = index_.boot_id,
                    .borrows = are_lent(index_, there.placements)};
    for (const placement::Placement& placement : there.placements) {
      attempt.peers.push_back({index_.ledger.node(placement.node).name,
                               placement.devices,
                               choose_cpus(index_, job.spec.request, placement)});
    }
    attempt.allocation = std::move(attempt.peers.front());
    attempt.peers.erase(attempt.peers.begin());
    job.state = Starting{std::move(attempt), std::nullopt, requeues, preemption_at};
  });
  saved(id, Happening::Starting);
  index_.put_nodes_used_by(id, *attempt_of(*index_.find(id)));
  try_node(id, attempt_of(*index_.find(id))->allocation.node);
  effects_.emplace_back(
      effect::Launch{std::make_shared<const LaunchOrder>(launch_order(index_, *index_.find(id)))});
}

}  // namespace gflow::engine
