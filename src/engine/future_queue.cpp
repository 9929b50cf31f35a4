// SPDX-License-Identifier: Apache-2.0
#include "engine/future_queue.h"

#include <algorithm>

#include "base/share.h"

namespace gflow::engine {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

/// Dependencies that are looked at in all.
constexpr std::size_t kMaxEdges = 4'000;
/// Jobs that ended and are not learned yet that are remembered.
constexpr std::size_t kMaxUntaught = 250;

}  // namespace

FutureQueue::FutureQueue(Index& index)
    : index_(index),
      demands_(index.ledger.demands()),
      rules_(index.order_rules()),
      runs_(index.history),
      learned_until_(index.learned_until) {}

/// What jobs that come later ask for, and no other does, is known to the ledger no more.
FutureQueue::~FutureQueue() {
  while (index_.ledger.demands() > demands_) {
    index_.placer->forget_last_demand(index_.ledger);
    index_.ledger.forget_last_demand();
  }
}

void FutureQueue::gather(std::size_t most, const Job* asked) {
  const std::vector<Waiting> waiting = first_waiting(index_, most);
  for (const Waiting& one : waiting) add(one);
  const bool is_behind =
      asked != nullptr && waiting.size() == most && most > 0 &&
      index_.place_of(*index_.find(waiting.back().job)) < index_.place_of(*asked);
  if (asked != nullptr && !is_behind) add_asked(*asked);
  most_ = std::max(most, jobs_.size());
  add_timed((most_ - jobs_.size()) / 2);
  add_parked((most_ - jobs_.size()) / 2);
  add_dependents();
  count_users();
  remember_untaught();
}

const FutureJob* FutureQueue::find(JobId id) const {
  const auto at = by_id_.find(id);
  return at == by_id_.end() ? nullptr : at->second;
}

void FutureQueue::add(FutureJob job) {
  job.run_time = lines_[job.line].run_time;
  jobs_.push_back(job);
  by_id_.emplace(job.id, &jobs_.back());
}

void FutureQueue::add(const Waiting& waiting) {
  const std::size_t line = line_of(*waiting.line, waiting.shape, waiting.key.priority);
  add({.id = waiting.job,
       .key = waiting.key,
       .line = line,
       .keeps_from = waiting.keeps_from,
       .needs_more = waiting.needs_more});
  lines_[line].jobs.emplace(waiting.key, &jobs_.back());
}

FutureJob FutureQueue::future_of(const Job& job) {
  const QueueKey key = index_.key_of(job);
  const std::size_t line = line_of(job);
  return {.id = job.id,
          .key = key,
          .line = line,
          .keeps_from = keeps_from(index_, key),
          .needs_more = lines_[line].shape.gang != kNoGang};
}

void FutureQueue::add_asked(const Job& job) {
  add(future_of(job));
  FutureJob& added = jobs_.back();
  lines_[added.line].jobs.emplace(added.key, &added);
}

/// Of groups with a limit, those it keeps from the queue.
void FutureQueue::add_parked(std::size_t most) {
  const std::size_t end = jobs_.size() + most;
  for (const auto& [name, group] : index_.groups) {
    if (group.limit <= 0 || group.parked.empty()) continue;
    for (const QueueKey key : group.parked) {
      if (jobs_.size() >= end) return;
      if (!add_later(key.id)) break;
    }
  }
}

void FutureQueue::add_timed(std::size_t most) {
  const std::size_t end = jobs_.size() + most;
  for (const auto& [at, id] : index_.begin_later) {
    if (jobs_.size() >= end) return;
    (void)add_later(id);
  }
  for (const auto& [at, id] : index_.backoff) {
    if (jobs_.size() >= end) return;
    (void)add_later(id);
  }
}

/// Of those who run and wait, and of these in turn.
void FutureQueue::add_dependents() {
  const auto add_those_of = [this](JobId id) {
    for (const JobId dependent : index_.dependencies.dependents(id)) {
      if (jobs_.size() >= most_ || edges_ >= kMaxEdges) return;
      (void)add_later(dependent);
    }
  };
  if (index_.dependencies.edges() == 0) return;
  for (const Status status : kActive.list()) {
    for (const JobId id : index_.in(status)) add_those_of(id);
  }
  for (std::size_t i = 0; i < jobs_.size(); ++i) add_those_of(jobs_[i].id);
}

/// How many have to end before it may start; nothing if that is not known.
std::optional<std::size_t> FutureQueue::ends_awaited(const Job& job) {
  if (index_.dependencies.state(job.id) == DependencyState::Met) return 0;
  const Dependencies& wants = job.spec.dependencies;
  edges_ += wants.jobs.size();
  if (edges_ > kMaxEdges) return std::nullopt;
  std::size_t ends = 0;
  for (const JobId id : wants.jobs) {
    if (index_.end_of(id) != DependencyGraph::End::NotYet) continue;
    dependents_[id].push_back(by_id_.at(job.id));
    ++ends;
  }
  return wants.mode == DependencyMode::Any ? std::min<std::size_t>(ends, 1) : ends;
}

bool FutureQueue::add_later(JobId id) {
  if (by_id_.contains(id)) return true;
  const Job& job = *index_.find(id);
  const auto* queued = std::get_if<Queued>(&job.state);
  if (queued == nullptr || index_.dependencies.state(id) == DependencyState::Never) return false;
  const bool has_group = !job.spec.group.empty() && job.spec.max_concurrent > 0;
  const std::optional<std::size_t> group = group_of(job.spec);
  if (has_group && !group) return false;
  FutureJob later = future_of(job);
  later.group = group;
  later.comes_later = true;
  if (job.spec.begin && *job.spec.begin > index_.now.wall) {
    later.gate = index_.now.mono + (*job.spec.begin - index_.now.wall);
    later.has_begin = true;
  }
  if (queued->not_before && index_.mono_at(*queued->not_before) > later.gate) {
    later.gate = index_.mono_at(*queued->not_before);
    later.has_begin = false;
  }
  const bool is_met = index_.dependencies.state(id) == DependencyState::Met;
  if (is_met && later.gate <= index_.now.mono && !is_parked(job, later.key)) return false;
  add(later);
  FutureJob& added = jobs_.back();
  const std::optional<std::size_t> awaits = ends_awaited(job);
  if (!awaits) return false;
  added.awaits = *awaits;
  if (added.awaits > 0) return true;
  if (added.gate > index_.now.mono) {
    gates_.emplace(added.gate, added.id);
  } else if (group) {
    groups_[*group].parked.emplace(added.key, &added);
  }
  return true;
}

/// Else it stands in the queue.
bool FutureQueue::is_parked(const Job& job, const QueueKey& key) const {
  const engine::Group* group = index_.group(job);
  return group != nullptr && group->parked.contains(key);
}

std::size_t FutureQueue::line_of(Line& line, const Shape& shape, int priority) {
  const auto [at, added] = by_line_.try_emplace(&line, lines_.size());
  if (!added) return at->second;
  FutureLine& fresh = lines_[add_line(shape, priority, line.contender)];
  fresh.allowance = line.allowance;
  fresh.run_time = line.run_time;
  return at->second;
}

std::size_t FutureQueue::line_of(const Job& job) {
  const Shape shape = index_.shape_of(job);
  const Kind kind = index_.kind_of(job);
  if (const auto alike = index_.ready.find(shape); alike != index_.ready.end()) {
    const auto line = alike->second.find(kind);
    if (line != alike->second.end()) return line_of(line->second, shape, kind.priority);
  }
  const auto [at, added] = by_kind_.try_emplace({shape, kind}, lines_.size());
  if (!added) return at->second;
  const Contender contender = index_.contender_of(job);
  FutureLine& fresh = lines_[add_line(shape, kind.priority, contender)];
  const std::int64_t hold = expected_hold(index_.history, contender);
  fresh.allowance = allowance(rules_, hold, contender.stoppable);
  fresh.run_time = index_.expected_run(contender);
  return at->second;
}

std::size_t FutureQueue::add_line(const Shape& shape, int priority, const Contender& contender) {
  const Signature& signature = contender.signature;
  FutureLine line{.shape = shape, .priority = priority, .contender = contender};
  line.shape_number = shapes_.try_emplace(shape, shapes_.size()).first->second;
  line.demand_number = asked_.try_emplace(shape.demand, asked_.size()).first->second;
  line.owner = {.uid = signature.uid, .parts = signature.parts, .alike = runs_.of(signature)};
  if (signature.parts > 0) {
    const auto limit = index_.gpu_limit(signature.uid, {});
    if (limit) line.gpu_limit = limit->parts;
  }
  lines_.push_back(std::move(line));
  return lines_.size() - 1;
}

/// One of so many that most of them are not looked at is none.
std::optional<std::size_t> FutureQueue::group_of(const JobSpec& spec) {
  if (spec.group.empty()) return std::nullopt;
  const GroupKey key = engine::group_of(spec);
  const auto group = index_.groups.find(key);
  if (group == index_.groups.end() || group->second.limit <= 0) return std::nullopt;
  const engine::Group& members = group->second;
  if (members.queued.size() > most_) return std::nullopt;
  const auto [at, added] = by_group_.try_emplace(key, groups_.size());
  if (!added) return at->second;
  Group fresh{.room = members.limit - members.active};
  for (const QueueKey one : members.queued) {
    const auto known = by_id_.find(one.id);
    if (known == by_id_.end()) {
      --fresh.room;
      continue;
    }
    known->second->group = at->second;
    fresh.queued.emplace(one, known->second);
  }
  groups_.push_back(std::move(fresh));
  return at->second;
}

FutureOwner FutureQueue::owner_of(const Job& active, const Signature& signature) {
  return {.uid = signature.uid,
          .parts = signature.parts,
          .alike = runs_.of(signature),
          .group = group_of(active.spec)};
}

void FutureQueue::count_users() {
  std::set<std::uint32_t> uids;
  for (const FutureLine& line : lines_) uids.insert(line.owner.uid);
  fair_ = index_.fair.among(uids);
  for (const FutureJob& job : jobs_) {
    const bool is_asked = !job.comes_later && index_.find(job.id) == nullptr;
    if (is_asked) fair_.wait(lines_[job.line].owner.uid, 1);
  }
}

/// Who ended and is learned at the next occasion.
void FutureQueue::remember_untaught() {
  if (rules_.order == Order::Submission) return;
  const std::set<EndedJobs::Age>& by_age = index_.ended.by_age();
  for (auto at = by_age.lower_bound({learned_until_, JobId(0)});
       at != by_age.end() && over_.size() < kMaxUntaught;
       ++at) {
    const Job& job = *index_.find(at->second);
    const std::optional<seconds> took = Index::took(job);
    if (took) over_.push_back({at->first, runs_.of(index_.contender_of(job).signature), *took});
  }
}

/// As the engine does, at full ten minutes.
void FutureQueue::learn(milliseconds lived) {
  constexpr std::chrono::minutes kBetween(10);
  const milliseconds until = lived / kBetween * kBetween;
  if (until <= learned_until_) return;
  learned_until_ = until;
  if (over_.empty() || over_.front().lived >= until) return;
  for (; !over_.empty() && over_.front().lived < until; over_.pop_front()) {
    runs_.record(over_.front().alike, over_.front().took);
  }
  for (FutureLine& line : lines_) expect(line);
}

/// What a job that can be stopped is expected to hold hangs on more than a mean: it stays.
void FutureQueue::expect(FutureLine& line) {
  constexpr std::int64_t kEnough = 3;
  const Contender& contender = line.contender;
  seconds mean = runs_.run_time(line.owner.alike);
  if (contender.limit) mean = std::min(mean, *contender.limit);
  const bool is_known = runs_.jobs_like(line.owner.alike) >= kEnough;
  line.run_time = is_known ? mean : contender.limit.value_or(std::chrono::years(100));
  if (contender.stoppable) return;
  line.allowance = allowance(rules_, hold_of(line.owner.parts, mean), false);
}

seconds FutureQueue::waited(const FutureJob& job, MonoTime now) const {
  const auto at = std::chrono::floor<seconds>(index_.lived_at(now));
  if (rules_.order == Order::Learned) return at - seconds(job.key.rank);
  const Job* known = index_.find(job.id);
  if (known == nullptr) return std::chrono::floor<seconds>(now - index_.now.mono);
  const Contender contender = index_.contender_of(*known);
  return at - contender.ready - contender.served;
}

QueueKey FutureQueue::place_of(const FutureLine& line) const {
  const QueueKey& first = line.jobs.begin()->first;
  if (rules_.order == Order::Submission) return first;
  const Waiter waiter{.ready = seconds(first.rank),
                      .penalty = fair_.penalty(line.owner.uid),
                      .stoppable = line.contender.stoppable};
  const Place place = engine::place_of(rules_, waiter, line.allowance, clock_);
  return {first.priority, rank_of(place), first.id};
}

void FutureQueue::settle(MonoTime now) {
  const milliseconds lived = index_.lived_at(now);
  clock_ = std::chrono::floor<seconds>(lived);
  if (rules_.order == Order::Learned) {
    learn(lived);
    (void)fair_.settle(clock_);
  }
  heap_.clear();
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (!lines_[i].jobs.empty()) heap_.push_back({place_of(lines_[i]), i});
  }
  std::make_heap(heap_.begin(), heap_.end());
}

/// A place that has moved back since it was asked for is put right before.
const FutureLine& FutureQueue::first() {
  while (true) {
    const Candidate& best = heap_.front();
    const FutureLine& line = lines_[best.line];
    if (!(best.place < place_of(line))) return line;
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.back().place = place_of(lines_[heap_.back().line]);
    std::push_heap(heap_.begin(), heap_.end());
  }
}

void FutureQueue::drop_line() {
  std::pop_heap(heap_.begin(), heap_.end());
  heap_.pop_back();
}

void FutureQueue::start_first() {
  std::pop_heap(heap_.begin(), heap_.end());
  const FutureLine& line = lines_[heap_.back().line];
  FutureJob& job = line.first();
  unqueue(job);
  fair_.hold(line.owner.uid, line.owner.parts);
  if (job.group) {
    Group& group = groups_[*job.group];
    group.queued.erase(job.key);
    --group.room;
    balance(group);
  }
  if (line.jobs.empty()) {
    heap_.pop_back();
  } else {
    heap_.back().place = place_of(line);
    std::push_heap(heap_.begin(), heap_.end());
  }
  if (rules_.order == Order::Learned && fair_.settle_again()) compare_again();
}

void FutureQueue::compare_again() {
  for (Candidate& one : heap_) one.place = place_of(lines_[one.line]);
  std::make_heap(heap_.begin(), heap_.end());
}

void FutureQueue::ended(JobId id, const FutureOwner& owner, milliseconds ran, MonoTime now) {
  const milliseconds lived = index_.lived_at(now);
  fair_.forget_released();
  fair_.hold(owner.uid, -owner.parts);
  fair_.charge(
      owner.uid, ran * owner.parts / Share::kWholeParts, std::chrono::floor<seconds>(lived));
  over_.push_back({lived, owner.alike, std::chrono::floor<seconds>(ran)});
  if (owner.group) {
    ++groups_[*owner.group].room;
    balance(groups_[*owner.group]);
  }
  const auto dependents = dependents_.find(id);
  if (dependents == dependents_.end()) return;
  for (FutureJob* job : dependents->second) {
    if (job->awaits == 0) continue;
    --job->awaits;
    if (job->awaits == 0) make_ready(*job, now);
  }
}

std::optional<MonoTime> FutureQueue::next_gate() const {
  return gates_.empty() ? std::nullopt : std::optional(gates_.begin()->first);
}

void FutureQueue::open_gates(MonoTime now) {
  fair_.forget_released();
  while (!gates_.empty() && gates_.begin()->first <= now) {
    FutureJob& job = *by_id_.at(gates_.begin()->second);
    gates_.erase(gates_.begin());
    make_ready(job, now);
  }
}

void FutureQueue::make_ready(FutureJob& job, MonoTime at) {
  if (job.gate > at) {
    gates_.emplace(job.gate, job.id);
    return;
  }
  job.ready = at;
  if (!job.group) return queue(job);
  groups_[*job.group].parked.emplace(job.key, &job);
  balance(groups_[*job.group]);
}

void FutureQueue::queue(FutureJob& job) {
  FutureLine& line = lines_[job.line];
  line.jobs.emplace(job.key, &job);
  fair_.wait(line.owner.uid, 1);
}

void FutureQueue::unqueue(FutureJob& job) {
  FutureLine& line = lines_[job.line];
  line.jobs.erase(job.key);
  fair_.wait(line.owner.uid, -1);
}

/// As Index does: the best of those that are ready stand in the queue, as many as may still start.
void FutureQueue::balance(Group& group) {
  const auto room = static_cast<std::size_t>(std::max(group.room, 0));
  const auto move_to_queue = [&] {
    auto first = group.parked.extract(group.parked.begin());
    queue(*first.mapped());
    group.queued.insert(std::move(first));
  };
  const auto park_last = [&] {
    auto last = group.queued.extract(std::prev(group.queued.end()));
    unqueue(*last.mapped());
    group.parked.insert(std::move(last));
  };
  while (!group.parked.empty() && group.queued.size() < room) move_to_queue();
  while (group.queued.size() > room) park_last();
  while (!group.parked.empty() && !group.queued.empty() &&
         group.parked.begin()->first < group.queued.rbegin()->first) {
    park_last();
    move_to_queue();
  }
}

}  // namespace gflow::engine
