// SPDX-License-Identifier: Apache-2.0
#include "engine/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <ranges>
#include <span>
#include <utility>
#include <vector>

#include "base/text.h"
#include "engine/index.h"

namespace gflow::engine {

namespace {

/// How many jobs are looked at before they are packed again.
constexpr std::size_t kAtOnce = 1000;

/// All jobs of a group carry its limit. Where a store of an earlier version says otherwise, the
/// newest job is believed.
void agree_on_limits(Index& index) {
  std::map<JobId, std::uint64_t> grouped = std::exchange(index.restored_in_groups, {});
  std::map<GroupKey, int> limits;
  for (const auto& [first, count] : grouped) {
    const JobSpec& spec = index.find(first)->spec;
    limits[group_of(spec)] = spec.max_concurrent;
  }
  for (const auto& [first, count] : grouped) {
    const JobSpec& spec = index.find(first)->spec;
    const int limit = limits.at(group_of(spec));
    if (spec.max_concurrent == limit) continue;
    for (std::uint64_t i = 0; i < count; ++i) {
      index.jobs.at(JobId(first.value + i)).spec.max_concurrent = limit;
    }
  }
  index.jobs.pack();
}

}  // namespace

State::State(Policy policy, std::string boot_id) : index_(std::make_unique<Index>()) {
  index_->set_policy(std::move(policy));
  index_->boot_id = std::move(boot_id);
}
State::~State() = default;
State::State(State&&) noexcept = default;
State& State::operator=(State&&) noexcept = default;

void State::set_lived(std::chrono::milliseconds lived, MonoTime at) {
  index_->lived_before = lived;
  index_->lived_from = at;
}
std::chrono::milliseconds State::lived(MonoTime at) const { return index_->lived_at(at); }

std::optional<WallTime> State::forgotten() const { return index_->forgotten; }
void State::set_forgotten(std::optional<WallTime> ended) { index_->forgotten = ended; }

void State::restore(Job&& job) {
  index_->list(job);
  if (!job.spec.group.empty() && !is_ended(job)) index_->restored_in_groups.emplace(job.id, 1);
  index_->jobs.restore(std::move(job));
}

void State::spare(JobId id, bool is_sparing) {
  if (is_sparing) {
    index_->sparing.insert(id);
  } else {
    index_->sparing.erase(id);
  }
}

void State::put_gang(GangNumber gang, std::size_t least, Nearness near) {
  if (!index_->gangs.put(gang, least, std::move(near))) return;
  index_->fronts.open_gang(gang);
  ++index_->revision;
}

void State::hold_gang(GangNumber gang, bool is_held) {
  Gang* its = index_->gangs.get(gang);
  if (its == nullptr) return;
  its->is_held = is_held;
  index_->fronts.open_gang(gang);
}

bool State::avoid_last_domain(GangNumber gang) {
  Gang* its = index_->gangs.get(gang);
  if (its == nullptr || !its->tried) return false;
  index_->fronts.open_gang(gang);
  return its->avoided.insert(*its->tried).second;
}

void State::avoid_no_domain(GangNumber gang) {
  Gang* its = index_->gangs.get(gang);
  if (its == nullptr) return;
  its->avoided.clear();
  its->refused.clear();
}

std::optional<GangView> State::gang_of(JobId id) const {
  const Gang* gang = index_->gangs.find(id);
  if (gang == nullptr) return std::nullopt;
  const Nearness& near = gang->near;
  return GangView{gang->start(),
                  gang->least,
                  gang->active,
                  gang->waiting.size(),
                  gang->room,
                  near.required > 0 ? near.levels[near.required - 1] : ""};
}

void State::join_gang(JobId id, GangNumber gang) { index_->gangs.join(id, gang); }
void State::leave_gang(JobId id) { index_->gangs.leave(id); }

void State::restore(JobRange&& range) {
  if (range.count == 1) return restore(std::move(range.first));
  if (!JobTable::can_be_packed(range.first)) {
    for (std::uint64_t i = 0; i < range.count; ++i) restore(range.at(i));
    return;
  }
  index_->list(range.first, range.count);
  if (!range.first.spec.group.empty()) {
    index_->restored_in_groups.emplace(range.first.id, range.count);
  }
  index_->jobs.add(range);
}

/// Links only now: whether a job's dependencies are met needs the jobs that come after it, too.
void State::restored(JobId next_id) {
  index_->next_id = next_id;
  agree_on_limits(*index_);
  for (const JobId id : index_->jobs.unpacked_ids()) {
    const Job& job = *index_->find(id);
    if (is_ended(job)) index_->link(job);
  }
  for (const auto& [at, id] : index_->ended.by_age()) {
    const Job& job = *index_->find(id);
    index_->peaks.add(
        job.spec.user.uid, job.spec.command, std::get<Ended>(job.state).outcome.peak_gpu_memory);
    index_->charge(job);
  }
  std::size_t seen = 0;
  for (const JobTable::Alike& alike : index_->jobs.alike()) {
    const Job& first = *index_->find(alike.first);
    if (is_ended(first)) continue;
    if (alike.count > 1 && Index::can_be_linked_at_once(first) &&
        !index_->gangs.has_any(alike.first, alike.count)) {
      const JobRange range{first, alike.count, alike.naming};
      index_->link(range.first, range.count, bytes_of(range));
      if (++seen % kAtOnce == 0) index_->jobs.pack();
      continue;
    }
    for (std::uint64_t i = 0; i < alike.count; ++i) {
      index_->link(i == 0 ? first : *index_->find(JobId(alike.first.value + i)));
      if (++seen % kAtOnce == 0) index_->jobs.pack();
    }
  }
  index_->pin_ended();
  index_->learn_traffic();
  index_->jobs.pack();
  ++index_->revision;
}

void State::show(std::vector<NodeRecord> nodes, Now now, std::uint64_t revision) {
  index_->now = now;
  for (NodeRecord& node : nodes) {
    NodeRecord& known = index_->nodes[node.machine.name];
    known = std::move(node);
    index_->put_node(known);
  }
  index_->sort_nodes();
  index_->count_gpus();
  index_->revision = revision;
}

const std::string& State::boot_id() const { return index_->boot_id; }
const Job* State::find(JobId id) const { return index_->find(id); }
JobId State::next_id() const { return index_->next_id; }
const std::map<std::string, NodeRecord>& State::nodes() const { return index_->nodes; }
const Policy& State::policy() const { return index_->policy; }
Totals State::totals() const { return index_->totals(); }
Totals State::totals(const std::string& node) const {
  const auto at = index_->ledger.find(node);
  return at ? index_->totals(*at) : Totals{};
}
const placement::Ledger& State::ledger() const { return index_->ledger; }
std::uint64_t State::revision() const { return index_->revision; }

std::vector<const Job*> State::last_ended(std::size_t most) const {
  std::vector<const Job*> found;
  for (const auto& [at, id] :
       index_->ended.by_age() | std::views::reverse | std::views::take(most)) {
    found.push_back(index_->find(id));
  }
  return found;
}

std::size_t State::count(Status status) const { return index_->in(status).size(); }
std::size_t State::count(StatusSet statuses) const { return index_->count(statuses); }

namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

bool matches(const Glance& job, const JobQuery& query) {
  const bool asks_by_name = !query.names.empty() || !query.project.empty() || !query.group.empty();
  if (!query.sight.knows(job.spec->user)) return false;
  if (asks_by_name && !query.sight.names(job.spec->user)) return false;
  const auto named = [&job](const std::string& pattern) { return glob_match(pattern, job.name()); };
  return (query.statuses.empty() || query.statuses.contains(job.status)) &&
         (query.users.empty() || contains(query.users, job.spec->user.name)) &&
         (query.names.empty() || std::ranges::any_of(query.names, named)) &&
         (query.project.empty() || query.project == job.spec->project) &&
         (query.group.empty() || query.group == job.spec->group) &&
         (!query.submitted_since || job.submitted >= *query.submitted_since);
}

/// Whether jobs of a user are looked for; of a query by_user() is true of.
bool asks_for(const JobQuery& query, std::uint32_t uid, const std::string& name) {
  const bool is_seen = query.sight.knows({uid, name});
  return is_seen && (query.users.empty() || contains(query.users, name));
}
/// Whether only jobs of some users can match.
bool by_user(const JobQuery& query) {
  return !query.users.empty() || query.sight.others == OthersJobs::None;
}

/// Ids of several sets at once, from one id on, in one direction.
class Merge {
 public:
  explicit Merge(const JobQuery& query) : after_(query.after), descending_(query.newest_first()) {}
  void add(const RunSet<JobId>& ids) {
    const auto from = !after_.is_set() ? (descending_ ? ids.end() : ids.begin())
                      : descending_    ? ids.lower_bound(after_)
                                       : ids.upper_bound(after_);
    const auto end = descending_ ? ids.begin() : ids.end();
    if (from != end) parts_.push_back({from, end});
  }
  /// The next id, or one that is not set at the end.
  JobId next() {
    if (parts_.empty()) return {};
    const auto first = std::ranges::min_element(parts_, [this](const Part& a, const Part& b) {
      return descending_ ? head(b) < head(a) : head(a) < head(b);
    });
    const JobId id = head(*first);
    if (descending_) {
      --first->at;
    } else {
      ++first->at;
    }
    if (first->at == first->end) parts_.erase(first);
    return id;
  }

 private:
  struct Part {
    RunSet<JobId>::Iterator at;  ///< in descending order, of the one before the next
    RunSet<JobId>::Iterator end;
  };
  [[nodiscard]] JobId head(const Part& part) const {
    return descending_ ? *std::prev(part.at) : *part.at;
  }

  JobId after_;
  bool descending_;
  std::vector<Part> parts_;
};

/// The smallest index that holds every job the filter can match.
Merge candidates(const Index& index, const JobQuery& query) {
  Merge merge(query);
  if (by_user(query)) {
    for (const auto& [uid, user] : index.by_user) {
      if (asks_for(query, uid, user.name)) merge.add(user.jobs);
    }
    return merge;
  }
  for (const StatusInfo& info : kStatuses) {
    if (query.statuses.empty() || query.statuses.contains(info.status)) {
      merge.add(index.in(info.status));
    }
  }
  return merge;
}

/// Of the jobs that are named, those that come after `after`.
std::span<const JobId> still_asked_for(const JobQuery& query) {
  const std::span<const JobId> ids = query.jobs;
  if (!query.after.is_set()) return ids;
  if (query.newest_first()) return {ids.begin(), std::ranges::lower_bound(ids, query.after)};
  return {std::ranges::upper_bound(ids, query.after), ids.end()};
}

}  // namespace

std::vector<const Job*> State::list(const JobQuery& query) const {
  return look_through(query, std::numeric_limits<std::size_t>::max()).jobs;
}

State::Listed State::list_some(const JobQuery& query, std::size_t max_seen) const {
  // Who reads all of a long queue, page by page, does not leave it unpacked.
  if (index_->jobs.shown() >= kAtOnce) index_->jobs.pack();
  return look_through(query, max_seen);
}

State::Listed State::look_through(const JobQuery& query, std::size_t max_seen) const {
  Listed listed;
  listed.more_after = glance_some(query, max_seen, [this, &listed](const Glance& found) {
    listed.jobs.push_back(index_->find(found.id));
  });
  return listed;
}

std::optional<JobId> State::glance_some(const JobQuery& query,
                                        std::size_t max_seen,
                                        const std::function<void(const Glance&)>& show) const {
  if (query.most == 0) return std::nullopt;
  JobTable::Reader jobs(index_->jobs);
  std::size_t seen = 0;
  std::size_t shown = 0;
  // False: enough for this piece.
  const auto take = [&](JobId id) {
    const std::optional<Glance> job = jobs.at(id);
    if (job && matches(*job, query)) {
      show(*job);
      ++shown;
    }
    return shown < query.most && ++seen < max_seen;
  };
  if (!query.jobs.empty()) {
    const std::span<const JobId> ids = still_asked_for(query);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const JobId id = query.newest_first() ? ids[ids.size() - 1 - i] : ids[i];
      if (!take(id)) return id;
    }
    return std::nullopt;
  }
  Merge merge = candidates(*index_, query);
  for (JobId id = merge.next(); id.is_set(); id = merge.next()) {
    if (!take(id)) return id;
  }
  return std::nullopt;
}

namespace {

/// One after the other in the order by priority, either way.
class PriorityWalk {
 public:
  using Alike = std::map<int, RunSet<JobId>>;
  PriorityWalk(const Alike& all, const JobQuery& query)
      : all_(all),
        backwards_(query.order.descending != query.order.reversed),
        newest_first_(query.order.reversed) {}

  /// Calls `take` with each job from a place on, until it returns false. Returns the last one taken
  /// then; nothing where these were all.
  template <typename Take>
  [[nodiscard]] std::optional<State::PriorityPlace> go(
      const std::optional<State::PriorityPlace>& after, const Take& take) const {
    for (auto at = first(after); at != all_.end(); at = next(at)) {
      const bool goes_on = after && at->first == after->priority;
      if (const auto last = go_through(at->second, goes_on ? after->id : JobId{}, take)) {
        return State::PriorityPlace{at->first, *last};
      }
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] Alike::const_iterator first(
      const std::optional<State::PriorityPlace>& after) const {
    if (!backwards_) return after ? all_.lower_bound(after->priority) : all_.begin();
    const auto end = after ? all_.upper_bound(after->priority) : all_.end();
    return end == all_.begin() ? all_.end() : std::prev(end);
  }
  [[nodiscard]] Alike::const_iterator next(Alike::const_iterator at) const {
    if (!backwards_) return std::next(at);
    return at == all_.begin() ? all_.end() : std::prev(at);
  }
  template <typename Take>
  [[nodiscard]] std::optional<JobId> go_through(const RunSet<JobId>& ids,
                                                JobId after,
                                                const Take& take) const {
    if (!newest_first_) {
      for (auto at = after.is_set() ? ids.upper_bound(after) : ids.begin(); at != ids.end(); ++at) {
        if (!take(*at)) return *at;
      }
      return std::nullopt;
    }
    for (auto at = after.is_set() ? ids.lower_bound(after) : ids.end(); at != ids.begin();) {
      --at;
      if (!take(*at)) return *at;
    }
    return std::nullopt;
  }

  const Alike& all_;
  bool backwards_;     ///< the highest first
  bool newest_first_;  ///< among those of a priority
};

}  // namespace

std::optional<State::PriorityPlace> State::glance_by_priority(
    const JobQuery& query,
    const std::optional<PriorityPlace>& after,
    std::size_t max_seen,
    const std::function<void(const Glance&)>& show) const {
  if (query.most == 0) return std::nullopt;
  JobTable::Reader jobs(index_->jobs);
  std::size_t seen = 0;
  std::size_t shown = 0;
  return PriorityWalk(index_->by_priority, query).go(after, [&](JobId id) {
    const bool is_asked_for = query.jobs.empty() || std::ranges::binary_search(query.jobs, id);
    const std::optional<Glance> job = is_asked_for ? jobs.at(id) : std::nullopt;
    if (job && matches(*job, query)) {
      show(*job);
      ++shown;
    }
    return shown < query.most && ++seen < max_seen;
  });
}

std::size_t State::size() const { return index_->jobs.size(); }

std::size_t State::seen_for(const JobQuery& query) const {
  if (!query.jobs.empty()) return query.jobs.size();
  if (!by_user(query)) return query.statuses.empty() ? size() : count(query.statuses);
  std::size_t theirs = 0;
  for (const auto& [uid, user] : index_->by_user) {
    if (asks_for(query, uid, user.name)) theirs += user.jobs.size();
  }
  return theirs;
}

std::optional<JobId> State::newest(std::uint32_t uid, std::uint64_t back) const {
  const auto user = index_->by_user.find(uid);
  if (user == index_->by_user.end() || back >= user->second.jobs.size()) return std::nullopt;
  return *std::prev(user->second.jobs.end(), static_cast<std::ptrdiff_t>(back) + 1);
}

std::vector<JobId> State::dependents(JobId id) const {
  const std::set<JobId>& dependents = index_->dependencies.dependents(id);
  return {dependents.begin(), dependents.end()};
}

std::optional<std::pair<std::string, Memory>> State::stores_most() const {
  const auto most = std::ranges::max_element(
      index_->stored, {}, &std::pair<const std::uint32_t, std::int64_t>::second);
  if (most == index_->stored.end()) return std::nullopt;
  return std::pair{index_->by_user.at(most->first).name, Memory{most->second}};
}

bool State::is_at_user_limit(JobId id) const {
  const Job* job = index_->find(id);
  return job != nullptr && is_pending(*job) && index_->is_at_limit(*job);
}

Share State::gpus_held(std::uint32_t uid) const {
  return Share{static_cast<std::int32_t>(index_->fair.held(uid))};
}

std::uint64_t State::dependency_visits() const { return index_->dependencies.visits(); }

std::uint64_t State::passes() const { return index_->passes; }

const std::vector<Drain>& State::drains() const { return index_->drains; }
void State::restore(std::vector<Drain> drains) { index_->drains = std::move(drains); }
void State::restore(std::vector<NodeHealth> unhealthy) {
  for (NodeHealth& health : unhealthy) index_->health[health.node] = std::move(health);
}

std::vector<MadeSlice> State::slices() const {
  std::vector<MadeSlice> slices;
  for (const SliceRecord& one : index_->slices) {
    slices.push_back(one.slice);
    slices.back().again = false;
    slices.back().only_looks = false;
  }
  return slices;
}

std::string State::refused_slice(std::string_view node, std::string_view gpu) const {
  for (const SliceRecord& one : index_->slices) {
    const bool is_it = !one.trouble.empty() && one.slice.node == node && one.slice.gpu == gpu;
    if (is_it) return fmt::format("{}: {}", one.slice.profile, one.trouble);
  }
  std::string last;
  for (const CutRefusal& one : index_->cut_refusals) {
    const bool is_it = one.node == node && one.gpu == gpu;
    if (is_it) last = fmt::format("{}: {}", one.profile, one.why);
  }
  return last;
}

/// A reading of after a restart does not have what was removed before, nor lack what was made.
void State::restore(std::vector<MadeSlice> slices) {
  for (MadeSlice& slice : slices) {
    if (slice.stage == SliceStage::Removed) continue;
    const bool is_seen = slice.stage == SliceStage::Made;
    slice.again = true;
    index_->slices.push_back({.slice = std::move(slice), .is_seen = is_seen});
  }
}

std::vector<NodeHealth> State::unhealthy() const {
  std::vector<NodeHealth> nodes;
  for (const auto& [name, health] : index_->health) nodes.push_back(health);
  return nodes;
}

std::uint64_t State::looks() const { return index_->looks; }
void State::look_at_all_again() { index_->fronts.open_all(); }

std::optional<Peak> State::peak(std::uint32_t uid, std::string_view command) const {
  return index_->peaks.find(uid, command);
}

std::vector<GpuMemoryUse> State::gpu_memory_of(const Job& job) const {
  return index_->gpu_memory_of(job);
}

std::vector<JobId> State::holders(const std::string& node, int gpu) const {
  const auto place = index_->ledger.find(node);
  if (!place) return {};
  const auto at = index_->holders.find({*place, gpu});
  if (at == index_->holders.end()) return {};
  return {at->second.begin(), at->second.end()};
}

}  // namespace gflow::engine
