// SPDX-License-Identifier: Apache-2.0
#include "engine/forecast.h"

#include <algorithm>
#include <utility>

#include "engine/backfill.h"

namespace gflow::engine {

using placement::DemandIndex;
using placement::NodeIndex;
using placement::NodeState;
using placement::Placement;

namespace {

/// Who asks over and over, or of one job after the other, is told the same as long as nothing
/// changes, but for what is overdue, which is expected each moment.
constexpr std::chrono::seconds kForecastLasts{1};

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
  return job.parts == 0 && index.is_at_user_limit(index.find(job.job)->spec);
}

MonoTime keeps_from(const Index& index, const QueueKey& key) {
  if (index.policy.order.order == Order::Submission) return MonoTime::min();
  return index.mono_at(std::chrono::seconds(key.rank) + index.policy.keep_after);
}

Waiting waiting_of(const Index& index, const Rest& rest) {
  const Signature& signature = rest.front.line->contender.signature;
  Waiting job{.job = rest.front.first.id,
              .shape = index.fronts.shape(rest.front.shape),
              .run_time = rest.front.line->run_time,
              .uid = signature.uid,
              .parts = signature.parts,
              .priority = rest.front.first.priority,
              .keeps_from = keeps_from(index, rest.front.first)};
  job.needs_more = needs_more_than_room(index, job);
  return job;
}

}  // namespace

std::vector<Waiting> first_waiting(Index& index, std::size_t most) {
  index.expect_anew();
  std::vector<Rest> heap;
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

Forecast::Forecast(Index& index, std::vector<Waiting>& waiting)
    : ledger_(index.ledger),
      waiting_(waiting),
      max_against_all_(static_cast<std::size_t>(Places::max_against_all(index.policy))),
      now_(index.now.mono),
      horizon_(index.now.mono + std::chrono::years(10)) {
  for (NodeIndex node = 0; node < ledger_.size(); ++node) nodes_.push_back(ledger_.state(node));
  for (Waiting& job : waiting) {
    if (job.needs_more) continue;
    left_.push_back(&job);
    demands_.insert(job.shape.demand);
    if (job.parts == 0 || index.policy.gpu_quota.none()) continue;
    limits_left_.try_emplace(job.uid, index.gpu_limit_left(job.uid));
  }
  add_leavers(index);
}

void Forecast::add_leavers(Index& index) {
  Leavings leavings;
  const auto& by_node = leavings.by_node(index);
  for (NodeIndex node = 0; node < ledger_.size(); ++node) {
    for (const Leaving& one : by_node[static_cast<std::size_t>(node)]) {
      const Job& job = *index.find(one.job);
      const bool knows_like = index.knows_like(index.contender_of(job).signature);
      if (!knows_like && !index.latest_end(job)) continue;
      // As long as it may, where its like ran that long, too.
      const MonoTime end = knows_like ? std::min(one.end, index.likely_end(job)) : one.end;
      if (end >= horizon_) continue;
      const JobSpec& spec = job.spec;
      const std::int64_t parts = gpu_parts_of(spec.request) / std::max(spec.request.nodes, 1);
      leavers_.insert({end, one.demand, {node, one.devices}, one.presence, spec.user.uid, parts});
    }
  }
}

void Forecast::run() {
  const MonoTime begin = now_;
  do {
    start_who_can();
  } while (may_look() && end_next());
  for (Waiting& job : waiting_) {
    if (job.start == begin) job.start.reset();
  }
}

bool Forecast::fits(DemandIndex demand, NodeIndex node, const NodeState& state) {
  ++looks_;
  return ledger_.fits_state(demand, node, state);
}

bool Forecast::is_over_limit(const Waiting& job) const {
  const auto left = limits_left_.find(job.uid);
  return job.parts > 0 && left != limits_left_.end() && job.parts > left->second;
}

/// The first nodes that have it; none if they are too few.
Forecast::Room Forecast::room_for(DemandIndex demand) {
  const auto wanted = static_cast<std::size_t>(ledger_.demand(demand).nodes);
  Room there;
  for (NodeIndex node = 0; node < ledger_.size() && there.size() < wanted; ++node) {
    const NodeState& state = nodes_[static_cast<std::size_t>(node)];
    if (fits(demand, node, state)) there.push_back({node, ledger_.first_devices(demand, state)});
  }
  if (there.size() < wanted) there.clear();
  return there;
}

/// When enough have left for it, on nodes that are not taken; nothing if they never have, or nobody
/// knows.
std::optional<Forecast::Head> Forecast::head_of(const Waiting& job,
                                                const std::set<NodeIndex>& taken) {
  const auto wanted = static_cast<std::size_t>(ledger_.demand(job.shape.demand).nodes);
  std::vector<NodeState> later = nodes_;
  Head head{.start = now_, .demand = job.shape.demand, .priority = job.priority};
  std::set<NodeIndex> found;
  const auto look_at = [&](NodeIndex node) {
    if (taken.contains(node)) return;
    if (fits(job.shape.demand, node, later[static_cast<std::size_t>(node)])) found.insert(node);
  };
  for (NodeIndex node = 0; wanted > 1 && node < ledger_.size(); ++node) look_at(node);
  for (auto at = leavers_.begin(); found.size() < wanted; ++at) {
    if (at == leavers_.end() || !may_look()) return std::nullopt;
    const NodeIndex node = at->there.node;
    ledger_.give_back_on(
        later[static_cast<std::size_t>(node)], at->demand, at->there.devices, at->presence);
    head.start = at->end;
    look_at(node);
  }
  for (const NodeIndex node : found) {
    if (head.nodes.size() == wanted) break;
    head.nodes.emplace(node, std::move(later[static_cast<std::size_t>(node)]));
  }
  return head;
}

/// Jobs come in the order of the queue.
void Forecast::block(const Waiting& job) {
  const auto against_all =
      static_cast<std::size_t>(std::ranges::count(heads_, true, &Head::against_all));
  if (now_ < job.keeps_from || against_all == max_against_all_) {
    if (blocked_.size() < Places::kMaxOutranking) blocked_.push_back(&job);
    return;
  }
  std::set<NodeIndex> taken;
  for (const Head& head : heads_) {
    if (!head.against_all) continue;
    for (const auto& [node, state] : head.nodes) taken.insert(node);
  }
  auto head = head_of(job, taken);
  if (!head) return;
  head->against_all = true;
  heads_.push_back(*std::move(head));
}

void Forecast::keep_outranking(int priority) {
  const auto outranks = [priority](const Waiting* job) { return job->priority > priority; };
  for (const Waiting* job : blocked_) {
    if (!outranks(job)) continue;
    if (auto head = head_of(*job, {})) heads_.push_back(*std::move(head));
  }
  std::erase_if(blocked_, outranks);
}

/// Takes what is spare of what is kept, if it passes from that.
bool Forecast::let_pass(const Waiting& job, const Room& there) {
  keep_outranking(job.priority);
  std::vector<std::pair<NodeState*, NodeState>> taken;
  for (Head& head : heads_) {
    const bool is_concerned = head.against_all || job.priority < head.priority;
    if (!is_concerned || now_ + job.run_time <= head.start) continue;
    for (const Placement& one : there) {
      const auto kept = head.nodes.find(one.node);
      if (kept == head.nodes.end()) continue;
      NodeState after = kept->second;
      ledger_.take_on(after, job.shape.demand, one.devices);
      if (!fits(head.demand, one.node, after)) return false;
      taken.emplace_back(&kept->second, std::move(after));
    }
  }
  for (auto& [kept, after] : taken) *kept = std::move(after);
  return true;
}

void Forecast::start(Waiting& job, Room there) {
  job.start = now_;
  const auto left = limits_left_.find(job.uid);
  if (left != limits_left_.end()) left->second -= job.parts;
  const MonoTime end = now_ + job.run_time;
  const std::int64_t parts = job.parts / static_cast<std::int64_t>(there.size());
  for (Placement& one : there) {
    ledger_.take_on(nodes_[static_cast<std::size_t>(one.node)], job.shape.demand, one.devices);
    if (end >= horizon_) continue;
    leavers_.insert(
        {end, job.shape.demand, std::move(one), placement::Presence::Working, job.uid, parts});
  }
}

/// One pass over the queue: of a demand that does not fit no other one is looked at, and of each of
/// its shapes the first keeps a place.
void Forecast::start_who_can() {
  std::set<DemandIndex> full;
  std::set<Shape> blocked;
  heads_.clear();
  blocked_.clear();
  std::erase_if(left_, [](const Waiting* job) { return job->start.has_value(); });
  for (Waiting* const at : left_) {
    Waiting& job = *at;
    if (full.size() == demands_.size() || !may_look()) return;
    if (is_over_limit(job)) continue;
    Room there;
    if (!full.contains(job.shape.demand)) there = room_for(job.shape.demand);
    if (there.empty()) {
      full.insert(job.shape.demand);
      if (blocked.insert(job.shape).second) block(job);
    } else if (let_pass(job, there)) {
      start(job, std::move(there));
    }
  }
}

/// Goes on to when somebody may start: false if nobody who runs is known to end.
bool Forecast::end_next() {
  while (!leavers_.empty() && may_look()) {
    now_ = std::max(now_, leavers_.begin()->end);
    std::set<NodeIndex> changed;
    bool has_limit = false;
    while (!leavers_.empty() && leavers_.begin()->end <= now_) {
      const Leaver& gone = *leavers_.begin();
      const auto node = static_cast<std::size_t>(gone.there.node);
      ledger_.give_back_on(nodes_[node], gone.demand, gone.there.devices, gone.presence);
      changed.insert(gone.there.node);
      const auto left = limits_left_.find(gone.uid);
      if (left != limits_left_.end()) left->second += gone.parts;
      has_limit = has_limit || left != limits_left_.end();
      leavers_.erase(leavers_.begin());
    }
    const bool may_start = std::ranges::any_of(changed, [this](NodeIndex node) {
      return std::ranges::any_of(demands_, [this, node](DemandIndex demand) {
        return fits(demand, node, nodes_[static_cast<std::size_t>(node)]);
      });
    });
    if (has_limit || may_start) return true;
  }
  return false;
}

std::optional<WallTime> forecast_of(Index& index, const Job& job, Now now) {
  constexpr std::size_t kMost = 250;
  const Passer asks = index.passer_of(job);
  if (asks.shape.gang != kNoGang) return std::nullopt;
  std::vector<Waiting> waiting = first_waiting(index, kMost);
  const QueueKey place = index.place_of(job);
  const auto behind = std::ranges::find_if(waiting, [&](const Waiting& other) {
    return place < index.place_of(*index.find(other.job));
  });
  if (behind == waiting.end() && waiting.size() == kMost) return std::nullopt;
  const auto mine = waiting.insert(behind,
                                   {.job = job.id,
                                    .shape = asks.shape,
                                    .run_time = asks.run_time,
                                    .uid = asks.uid,
                                    .parts = asks.parts,
                                    .priority = asks.priority,
                                    .keeps_from = keeps_from(index, index.key_of(job))});
  Forecast(index, waiting).run();
  if (!mine->start) return std::nullopt;
  return now.wall + std::max(*mine->start - now.mono, MonoTime::duration{0});
}

std::vector<Expected> State::forecast(std::size_t most, Now now) const {
  Index& index = *index_;
  const auto& told = index.told_forecast;
  const bool is_true_still = told && told->revision == index.revision && told->most == most &&
                             now.mono - told->at < kForecastLasts;
  if (is_true_still) return told->expected;
  std::vector<Waiting> waiting = first_waiting(index, most);
  Forecast(index, waiting).run();
  const auto& head = index.find_awaited().head;
  std::vector<Expected> expected;
  for (const Waiting& job : waiting) {
    const bool is_proven = head && head->job == job.job && head->start && head->proven;
    const auto start = is_proven ? head->start : job.start;
    expected.push_back({job.job, {}});
    if (!start) continue;
    const WallTime at = now.wall + std::max(*start - now.mono, MonoTime::duration{0});
    expected.back().start = {at, is_proven};
  }
  index.told_forecast = {index.revision, most, now.mono, expected};
  return expected;
}

}  // namespace gflow::engine
