// SPDX-License-Identifier: Apache-2.0
#include "engine/forecast.h"

#include <algorithm>
#include <numeric>

#include "engine/backfill.h"

namespace gflow::engine {

using placement::DemandIndex;
using placement::NodeIndex;
using placement::NodeState;
using placement::Placement;
using std::chrono::seconds;

namespace {

/// Who asks over and over, or of one job after the other, is told the same as long as nothing
/// changes, but for what is overdue, which is expected each moment.
constexpr seconds kForecastLasts{1};

/// So many lines are compared in the time of a look.
constexpr std::size_t kLinesALook = 8;

}  // namespace

Forecast::Forecast(Index& index, FutureQueue& queue)
    : index_(index),
      ledger_(index.ledger),
      queue_(queue),
      full_(queue.demands(), 0),
      in_pass_(queue.demands(), 0),
      told_(queue.shapes(), 0),
      begin_(index.now.mono),
      now_(index.now.mono),
      horizon_(index.now.mono + std::chrono::years(10)) {
  for (NodeIndex node = 0; node < ledger_.size(); ++node) nodes_.push_back(ledger_.state(node));
  add_running(index);
}

/// As long as it may, where its like ran that long, too.
void Forecast::add_running(Index& index) {
  for (const Status status : kActive.list()) {
    for (const JobId id : index.in(status)) {
      const Job& job = *index.find(id);
      const Signature signature = index.contender_of(job).signature;
      const bool is_promised = index.promised_end(job).has_value();
      const MonoTime reckoned = std::max(index.expected_end(job), now_);
      MonoTime end = horizon_;
      if (is_promised) end = reckoned;
      if (index.knows_like(signature)) {
        end = std::min(reckoned, std::max(index.likely_end(job), now_));
      }
      add({.id = id,
           .end = end,
           .reckoned = reckoned,
           .is_promised = is_promised,
           .ran = run_time_of(job, now_) + (end - now_),
           .demand = index.demand_of(job.spec),
           .presence = presence_of(job),
           .there = index.placements_of(*attempt_of(job)),
           .owner = queue_.owner_of(job, signature)});
    }
  }
}

void Forecast::add(Runner runner) {
  reckoned_.emplace(runner.reckoned, runner.id);
  if (runner.end < horizon_) ends_.emplace(runner.end, runner.id);
  runners_.emplace(runner.id, std::move(runner));
}

void Forecast::run() {
  do {
    // Whoever starts tells so, and then it is decided anew.
    while (start_who_can()) queue_.forget_released();
  } while (may_look() && pass_time());
}

std::optional<Forecast::Start> Forecast::start_of(const FutureJob& job) const {
  if (job.start && *job.start == begin_) return std::nullopt;
  if (job.start) {
    const bool is_at_begin = job.has_begin && job.start == job.gate;
    return Start{*job.start, is_at_begin ? StartKnown::ByBegin : StartKnown::ByRunTimes};
  }
  if (job.needs_more) return std::nullopt;
  const bool stands_in_queue = !job.comes_later || job.ready.has_value();
  if (stands_in_queue && !may_look() && now_ > begin_) return Start{now_, StartKnown::NotBefore};
  if (job.ready && *job.ready > begin_) return Start{*job.ready, StartKnown::NotBefore};
  if (job.gate > begin_) return Start{job.gate, StartKnown::NotBefore};
  return std::nullopt;
}

bool Forecast::fits(DemandIndex demand, NodeIndex node, const NodeState& state) {
  ++looks_;
  return ledger_.fits_state(demand, node, state);
}

bool Forecast::is_over_limit(const FutureLine& line) const {
  const FutureOwner& owner = line.owner;
  return line.gpu_limit && owner.parts > *line.gpu_limit - queue_.held(owner.uid);
}

bool Forecast::is_full(const FutureLine& line) const { return full_[line.demand_number] != 0; }

/// The first nodes that have it; none if they are too few.
Forecast::Room Forecast::room_for(DemandIndex demand, const std::set<NodeIndex>& left_out) {
  const auto wanted = static_cast<std::size_t>(ledger_.demand(demand).nodes);
  Room there;
  for (NodeIndex node = 0; node < ledger_.size() && there.size() < wanted; ++node) {
    const NodeState& state = nodes_[static_cast<std::size_t>(node)];
    if (left_out.contains(node) || !fits(demand, node, state)) continue;
    there.push_back({node, ledger_.first_devices(demand, state)});
  }
  if (there.size() < wanted) there.clear();
  return there;
}

/// When enough have left for it, on nodes that are not taken: those where it fits soonest. Nothing
/// if they never have, or nobody knows.
std::optional<Forecast::Head> Forecast::head_of(const FutureLine& line,
                                                const FutureJob& job,
                                                const std::set<NodeIndex>& taken) {
  const DemandIndex demand = line.shape.demand;
  const auto wanted = static_cast<std::size_t>(ledger_.demand(demand).nodes);
  Head head{.start = now_,
            .demand = demand,
            .priority = line.priority,
            .uid = line.owner.uid,
            .parts = line.owner.parts,
            .waited = queue_.waited(job, now_)};
  std::map<NodeIndex, NodeState> later;
  std::map<NodeIndex, bool> promised;
  const auto look_at = [&](NodeIndex node, const NodeState& state) {
    const bool is_new = !taken.contains(node) && !head.nodes.contains(node);
    if (is_new && head.nodes.size() < wanted && fits(demand, node, state)) {
      head.nodes.emplace(node, state);
    }
  };
  for (NodeIndex node = 0; wanted > 1 && node < ledger_.size(); ++node) {
    look_at(node, nodes_[static_cast<std::size_t>(node)]);
  }
  for (const auto& [reckoned, id] : reckoned_) {
    if (head.nodes.size() == wanted) break;
    if (!may_look()) return std::nullopt;
    const Runner& gone = runners_.at(id);
    head.start = std::max(reckoned, now_);
    for (const Placement& one : gone.there) {
      NodeState& state =
          later.try_emplace(one.node, nodes_[static_cast<std::size_t>(one.node)]).first->second;
      ledger_.give_back_on(state, gone.demand, one.devices, gone.presence);
      promised.try_emplace(one.node, true).first->second &= gone.is_promised;
      look_at(one.node, state);
    }
  }
  if (head.nodes.size() < wanted) return std::nullopt;
  for (auto& [node, state] : head.nodes) {
    const auto at = later.find(node);
    if (at == later.end()) continue;
    state = std::move(at->second);
    head.is_proven = head.is_proven && promised.at(node);
  }
  return head;
}

std::set<NodeIndex> Forecast::nodes_of_heads(bool all) const {
  std::set<NodeIndex> nodes;
  for (const Head& head : heads_) {
    if (!all && !head.against_all) continue;
    for (const auto& [node, state] : head.nodes) nodes.insert(node);
  }
  return nodes;
}

/// Jobs come in the order of the queue.
void Forecast::block(const FutureLine& line) {
  if (keep_against_all(line)) return;
  if (blocked_.size() < Places::kMaxOutranking) blocked_.emplace_back(&line, &line.first());
}

/// As Places does.
bool Forecast::keep_against_all(const FutureLine& line) {
  const FutureJob& job = line.first();
  if (against_all_ == Places::max_against_all(index_.policy)) return false;
  if (line.gpu_limit) {
    std::int64_t wanted = line.owner.parts;
    for (const Head& head : heads_) wanted += head.uid == line.owner.uid ? head.parts : 0;
    if (wanted > *line.gpu_limit - queue_.held(line.owner.uid)) return false;
  }
  const bool has_waited = now_ >= job.keeps_from;
  if (!has_waited) {
    const bool is_wide = ledger_.demand(line.shape.demand).nodes > 1;
    if (!is_wide || line.contender.stoppable) return false;
    if (++tried_ > Places::kMaxAgainstAll) return false;
  }
  auto head = head_of(line, job, nodes_of_heads(false));
  if (!has_waited && !(head && head->is_proven)) return false;
  ++against_all_;
  if (!head) return true;
  head->against_all = true;
  heads_.push_back(*std::move(head));
  return true;
}

void Forecast::keep_outranking(int priority) {
  const auto outranks = [priority](const auto& one) { return one.first->priority > priority; };
  for (const auto& one : blocked_) {
    if (!outranks(one)) continue;
    if (auto head = head_of(*one.first, *one.second, {})) heads_.push_back(*std::move(head));
  }
  std::erase_if(blocked_, outranks);
}

/// Whether the place that is kept keeps it from where it would go: it is not over in time, and the
/// other has no patience with it.
bool Forecast::is_concerned(const Head& head, const FutureLine& line) const {
  if (!head.against_all && line.priority >= head.priority) return false;
  const Policy& policy = index_.policy;
  const bool is_learned = policy.order.order == Order::Learned;
  const bool is_promised = line.shape.bound > seconds::zero();
  const bool as_expected = head.waited < policy.order.guard && (!is_promised || is_learned);
  const seconds forever = std::chrono::years(100);
  seconds bound = as_expected ? line.run_time : forever;
  if (is_promised) bound = std::min(bound, line.shape.bound);
  return now_ + bound > head.start;
}

/// Takes what is spare of what is kept, if it passes from that.
bool Forecast::let_pass(const FutureLine& line, const Room& there) {
  keep_outranking(line.priority);
  const Policy& policy = index_.policy;
  const bool is_learned = policy.order.order == Order::Learned;
  const seconds patience =
      policy.backfill_patience + (is_learned ? seconds(policy.keep_after) : seconds::zero());
  std::vector<std::pair<NodeState*, NodeState>> taken;
  for (Head& head : heads_) {
    if (!is_concerned(head, line)) continue;
    const std::size_t before = taken.size();
    const bool fits_beside = std::ranges::all_of(there, [&](const Placement& one) {
      const auto kept = head.nodes.find(one.node);
      if (kept == head.nodes.end()) return true;
      NodeState after = kept->second;
      ledger_.take_on(after, line.shape.demand, one.devices);
      if (!fits(head.demand, one.node, after)) return false;
      taken.emplace_back(&kept->second, std::move(after));
      return true;
    });
    if (fits_beside) continue;
    taken.resize(before);
    const bool is_patient = head.against_all && !head.is_proven && line.priority >= head.priority &&
                            head.waited <= patience;
    if (!is_patient) return false;
  }
  for (auto& [kept, after] : taken) *kept = std::move(after);
  return true;
}

void Forecast::start(const FutureLine& line, Room there) {
  FutureJob& job = line.first();
  job.start = now_;
  for (const Placement& one : there) {
    NodeState& state = nodes_[static_cast<std::size_t>(one.node)];
    ledger_.take_on(state, line.shape.demand, one.devices);
  }
  const bool is_promised = line.shape.bound > seconds::zero();
  const seconds reckoned = is_promised ? line.shape.bound : line.run_time;
  add({.id = job.id,
       .end = std::min(now_ + job.run_time, horizon_),
       .reckoned = now_ + reckoned,
       .is_promised = is_promised,
       .ran = job.run_time,
       .demand = line.shape.demand,
       .there = std::move(there),
       .owner = {line.owner.uid, line.owner.parts, line.owner.alike, job.group}});
  queue_.start_first();
}

void Forecast::leave_out(const FutureLine& line) {
  --in_pass_[line.demand_number];
  if (!is_full(line)) --open_;
  queue_.drop_line();
}

void Forecast::set_full(const FutureLine& line) {
  if (std::exchange(full_[line.demand_number], 1) == 0) open_ -= in_pass_[line.demand_number];
}

/// Starts the first job of the first line, or takes the line out of the pass.
void Forecast::look_at(const FutureLine& line) {
  if (line.first().needs_more || is_over_limit(line)) return leave_out(line);
  Room there;
  if (!is_full(line)) there = room_for(line.shape.demand, {});
  if (there.empty()) {
    set_full(line);
    if (std::exchange(told_[line.shape_number], passes_) != passes_) block(line);
    return leave_out(line);
  }
  if (!let_pass(line, there)) {
    if (ledger_.size() > 1) there = room_for(line.shape.demand, nodes_of_heads(true));
    if (ledger_.size() == 1 || there.empty() || !let_pass(line, there)) return leave_out(line);
  }
  start(line, std::move(there));
  if (!line.jobs.empty()) return;
  --in_pass_[line.demand_number];
  --open_;
}

/// How many lines want what, and how many of them there may be room for.
void Forecast::count_lines() {
  std::ranges::fill(in_pass_, 0);
  open_ = 0;
  demand_of_.assign(full_.size(), 0);
  for (std::size_t i = 0; i < queue_.lines(); ++i) {
    const FutureLine& line = queue_.line_at(i);
    if (line.jobs.empty()) continue;
    ++in_pass_[line.demand_number];
    demand_of_[line.demand_number] = line.shape.demand;
    if (!is_full(line)) ++open_;
  }
  looks_ += queue_.lines() / kLinesALook + 1;
}

/// One pass over the queue: of a demand that does not fit no other one is looked at, and of each of
/// its shapes the first keeps a place.
bool Forecast::start_who_can() {
  ++passes_;
  count_lines();
  for (const NodeIndex node : std::exchange(changed_, {})) open_where_room(node);
  if (open_ == 0) return false;
  const std::size_t runners = runners_.size();
  queue_.settle(now_);
  heads_.clear();
  blocked_.clear();
  against_all_ = 0;
  tried_ = 0;
  while (open_ > 0 && !queue_.is_over() && may_look()) look_at(queue_.first());
  return runners_.size() > runners;
}

/// Of demands for which there was no room.
void Forecast::open_where_room(NodeIndex node) {
  const NodeState& state = nodes_[static_cast<std::size_t>(node)];
  for (std::size_t demand = 0; demand < full_.size(); ++demand) {
    if (full_[demand] == 0 || in_pass_[demand] == 0) continue;
    if (!fits(demand_of_[demand], node, state)) continue;
    full_[demand] = 0;
    open_ += in_pass_[demand];
  }
}

void Forecast::end(const Runner& runner) {
  for (const Placement& one : runner.there) {
    NodeState& state = nodes_[static_cast<std::size_t>(one.node)];
    ledger_.give_back_on(state, runner.demand, one.devices, runner.presence);
    changed_.insert(one.node);
  }
  queue_.ended(runner.id, runner.owner, runner.ran, now_);
}

/// Goes on to when the next one ends or comes to the queue: false if nobody is known to.
bool Forecast::pass_time() {
  const std::optional<MonoTime> gate = queue_.next_gate();
  if (ends_.empty() && !gate) return false;
  if (gate && (ends_.empty() || *gate <= ends_.begin()->first)) {
    now_ = std::max(now_, *gate);
    queue_.open_gates(now_);
    return true;
  }
  const auto [at, id] = *ends_.begin();
  now_ = std::max(now_, at);
  const auto runner = runners_.extract(id);
  ends_.erase(ends_.begin());
  reckoned_.erase({runner.mapped().reckoned, id});
  end(runner.mapped());
  return true;
}

QueueTurn queue_turn_of(Index& index, const Job& job, Now now) {
  constexpr std::size_t kMost = 250;
  FutureQueue queue(index);
  queue.gather(kMost, &job);
  const FutureJob* asked = queue.find(job.id);
  if (asked == nullptr) return {};
  const QueueKey place = index.place_of(job);
  const auto stands_ahead = [&](const FutureJob& one) {
    return !one.comes_later && one.id != job.id && index.place_of(*index.find(one.id)) < place;
  };
  const auto count = [&queue](const auto& what) {
    return static_cast<std::size_t>(std::ranges::count_if(queue.jobs(), what));
  };
  if (!asked->needs_more) {
    Forecast forecast(index, queue);
    forecast.run();
    // Who waits, and could start in this moment, has been told not to: but this one is new.
    if (asked->start && *asked->start <= now.mono) return {now.wall, count(stands_ahead)};
    const auto start = forecast.start_of(*asked);
    if (start && start->known != StartKnown::NotBefore) {
      // Those that their group lets start one after the other stand in no queue, and go before it.
      const auto comes_ahead = [&](const FutureJob& one) {
        return one.comes_later && one.start && *one.start < start->at;
      };
      return {.start = now.wall + std::max(start->at - now.mono, MonoTime::duration{0}),
              .ahead = count(stands_ahead) + count(comes_ahead)};
    }
  }
  if (count([](const FutureJob& one) { return one.comes_later; }) > 0) return {};
  return {.start = {}, .ahead = count(stands_ahead)};
}

namespace {

/// Of those that stand in the queue all, in its order; then of the others those of which something
/// is known, as they should start.
std::vector<Expected> expected_of(const FutureQueue& queue, const Forecast& forecast, Now now) {
  std::vector<Expected> expected;
  std::vector<std::pair<Forecast::Start, JobId>> later;
  for (const FutureJob& job : queue.jobs()) {
    const auto start = forecast.start_of(job);
    if (job.comes_later) {
      if (start) later.emplace_back(*start, job.id);
      continue;
    }
    expected.push_back({job.id, {}});
    if (start) expected.back().start = {now.wall + (start->at - now.mono), start->known};
  }
  std::ranges::sort(later, [](const auto& a, const auto& b) {
    return a.first.at != b.first.at ? a.first.at < b.first.at : a.second < b.second;
  });
  for (const auto& [start, id] : later) {
    expected.push_back({id, ExpectedStart{now.wall + (start.at - now.mono), start.known}});
  }
  return expected;
}

}  // namespace

std::vector<Expected> State::forecast(std::size_t most, Now now) const {
  Index& index = *index_;
  const auto& told = index.told_forecast;
  const bool is_true_still = told && told->revision == index.revision && told->most == most &&
                             now.mono - told->at < kForecastLasts;
  if (is_true_still) return told->expected;
  FutureQueue queue(index);
  queue.gather(most);
  Forecast forecast(index, queue);
  forecast.run();
  const auto& head = index.find_awaited().head;
  std::vector<Expected> expected = expected_of(queue, forecast, now);
  for (Expected& one : expected) {
    if (!head || head->job != one.job || !head->start || !head->proven) continue;
    const WallTime latest = now.wall + (*head->start - now.mono);
    // Who comes to the queue later may go before it.
    if (!one.start || one.start->at <= latest) one.start = {latest, StartKnown::ByLimits};
  }
  for (Expected& one : expected) {
    if (one.start) one.start->at = std::max(one.start->at, now.wall);
  }
  index.told_forecast = {index.revision, most, now.mono, expected};
  return expected;
}

}  // namespace gflow::engine
