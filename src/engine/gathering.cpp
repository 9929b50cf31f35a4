// SPDX-License-Identifier: Apache-2.0
#include "engine/gathering.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "core/stop.h"

namespace gflow::engine {

using placement::DemandIndex;
using placement::DomainIndex;
using placement::Domains;
using placement::kNoDomain;
using placement::NodeIndex;

namespace {

/// Of a gang of more different requests the others count as if they fit anywhere.
constexpr std::size_t kMostDemands = 16;
constexpr std::size_t kMostOnNode = 64;

/// How many of its jobs run in each domain of a level.
std::map<DomainIndex, std::size_t> running_in(Index& index,
                                              const Gang& gang,
                                              const Domains& domains,
                                              std::size_t level) {
  std::map<DomainIndex, std::size_t> running;
  for (const JobId id : gang.members) {
    const Job* job = index.find(id);
    if (job == nullptr || !is_active(*job) || stop_of(*job) != nullptr) continue;
    const auto node = index.ledger.find(attempt_of(*job)->allocation.node);
    const DomainIndex domain = node ? domains.of(*node, level) : kNoDomain;
    if (domain != kNoDomain) ++running[domain];
  }
  return running;
}

/// Whether one of those that were tried is this domain.
bool is_one_of(const std::set<Gang::Tried>& those,
               const Index& index,
               const Domains& domains,
               std::size_t level,
               DomainIndex domain) {
  return std::ranges::any_of(those, [&](const Gang::Tried& tried) {
    const auto node = index.ledger.find(tried.node);
    return node && tried.level == level && domains.of(*node, level) == domain;
  });
}

std::int64_t free_gpu_parts(const placement::NodeState& state) {
  std::int64_t parts = 0;
  for (const placement::DeviceState& device : state.devices) {
    if (state.open && device.usable) parts += device.free.parts;
  }
  return parts;
}

}  // namespace

const Domains& Index::domains_of(const std::vector<std::string>& levels) {
  constexpr std::size_t kMost = 32;  // of different ones that are kept
  if (const auto known = domains.find(levels); known != domains.end()) return known->second;
  if (domains.size() == kMost) domains.clear();
  return domains.try_emplace(levels, ledger, levels).first->second;
}

/// Who waits for room in one domain may have it in what is one now.
void Index::forget_domains() {
  if (domains.empty()) return;
  domains.clear();
  fronts.open_all();
}

Gathering::Gathering(Index& index, const Gang& gang)
    : index_(index), domains_(index.domains_of(gang.near.levels)), waiting_(gang.waiting.size()) {
  for (const QueueKey& key : gang.waiting) ++demands_[index.demand_of(index.find(key.id)->spec)];
  count_rooms();
  const Nearness& near = gang.near;
  const std::size_t levels = near.levels.size();
  const bool is_anywhere = near.required == 0;
  const std::size_t narrowest = near.is_any() ? levels : std::max(near.preferred, near.required);
  for (std::size_t level = narrowest; level > near.required; --level) {
    add_targets(level - 1, waiting_, gang);
  }
  if (is_anywhere) {
    most_room_ = waiting_;
    targets_.push_back({});
  } else {
    add_targets(near.required - 1, gang.needed(), gang);
  }
}

void Gathering::count_rooms() {
  rooms_.resize(static_cast<std::size_t>(domains_.size()));
  std::size_t counted = 0;
  for (const auto& [demand, jobs] : demands_) {
    if (++counted > kMostDemands) {
      for (Room& room : rooms_) room.jobs += jobs;
    } else {
      count_demand(demand, jobs, demands_.size() == 1);
    }
  }
  for (DomainIndex domain = 0; domain < domains_.size(); ++domain) {
    Room& room = rooms_[static_cast<std::size_t>(domain)];
    if (demands_.size() > 1) room.in_all = room.jobs;
    for (const NodeIndex node : domains_.domain(domain).nodes) {
      room.parts += free_gpu_parts(index_.ledger.state(node));
    }
  }
}

void Gathering::count_demand(DemandIndex demand, std::size_t jobs, bool is_only) {
  // Beyond the gang, too: that is what would be left. Of tiny requests it need not be known.
  const std::size_t most = std::max(jobs, kMostOnNode);
  std::vector<std::size_t> fitting;
  for (NodeIndex node = 0; node < index_.ledger.size(); ++node) {
    fitting.push_back(placement::count_that_fit(index_.ledger, demand, node, most));
  }
  for (DomainIndex domain = 0; domain < domains_.size(); ++domain) {
    std::size_t in_all = 0;
    for (const NodeIndex node : domains_.domain(domain).nodes) {
      in_all += fitting[static_cast<std::size_t>(node)];
    }
    Room& room = rooms_[static_cast<std::size_t>(domain)];
    room.jobs += std::min(jobs, in_all);
    if (is_only) room.in_all = in_all;
  }
}

bool Gathering::is_smaller(DomainIndex a, DomainIndex b) const {
  return std::tuple(room(a).in_all, room(a).parts, a) <
         std::tuple(room(b).in_all, room(b).parts, b);
}

/// Those of the level that may have room for so many, the best first.
void Gathering::add_targets(std::size_t level, std::size_t least, const Gang& gang) {
  const Nearness& near = gang.near;
  const DomainIndex home = near.required > 0 ? home_of(index_, gang, near.required - 1) : kNoDomain;
  const auto running = running_in(index_, gang, domains_, level);
  std::vector<DomainIndex> found;
  for (const DomainIndex domain : domains_.of_level(level)) {
    if (home != kNoDomain && domains_.at_level(domain, level, near.required - 1) != home) continue;
    if (level + 1 == near.required) most_room_ = std::max(most_room_, room(domain).jobs);
    if (room(domain).jobs < least) continue;
    if (is_one_of(gang.avoided, index_, domains_, level, domain)) continue;
    found.push_back(domain);
  }
  std::ranges::sort(found, [&](DomainIndex a, DomainIndex b) {
    if (running.contains(a) != running.contains(b)) return running.contains(a);
    const bool is_whole = room(a).jobs == waiting_;
    if (room(a).jobs != room(b).jobs) return room(a).jobs > room(b).jobs;
    return is_whole ? is_smaller(a, b) : a < b;
  });
  for (const DomainIndex domain : found) targets_.push_back({domain, level});
}

/// So many jobs to domains of one level, and on to those within them; what these have no room for
/// to nodes of theirs that are in none of these. How many have no room.
std::size_t Gathering::divide(std::span<const DomainIndex> among,
                              std::size_t jobs,
                              std::vector<Ground::Part>& parts) const {
  std::vector<DomainIndex> left(among.begin(), among.end());
  std::erase_if(left, [this](DomainIndex domain) { return room(domain).jobs == 0; });
  std::ranges::sort(left, [this](DomainIndex a, DomainIndex b) { return is_smaller(a, b); });
  while (jobs > 0 && !left.empty()) {
    const auto holds_all = [&](DomainIndex domain) { return room(domain).jobs >= jobs; };
    auto at = std::ranges::find_if(left, holds_all);
    if (at == left.end()) at = std::prev(left.end());
    const DomainIndex domain = *at;
    const std::size_t its = std::min(jobs, room(domain).jobs);
    left.erase(at);
    jobs -= its;
    const placement::Domain& found = domains_.domain(domain);
    const std::size_t rest = divide(found.parts, its, parts);
    if (rest > 0) parts.push_back({&found.nodes, rest});
  }
  return jobs;
}

std::optional<Ground> Gathering::next() {
  if (next_ == targets_.size()) return std::nullopt;
  const Target target = targets_[next_++];
  Ground ground;
  if (target.domain == kNoDomain) {
    (void)divide(domains_.of_level(0), waiting_, ground.parts);
    return ground;
  }
  ground.nodes = &domains_.domain(target.domain).nodes;
  ground.level = target.level;
  (void)divide(
      std::span(&target.domain, 1), std::min(waiting_, room(target.domain).jobs), ground.parts);
  return ground;
}

DomainIndex home_of(Index& index, const Gang& gang, std::size_t level) {
  const Domains& domains = index.domains_of(gang.near.levels);
  const auto running = running_in(index, gang, domains, level);
  const auto most =
      std::ranges::max_element(running, {}, [](const auto& one) { return one.second; });
  return most == running.end() ? kNoDomain : most->first;
}

std::vector<std::vector<NodeIndex>> areas_near(Index& index, const Gang& gang) {
  const Domains& domains = index.domains_of(gang.near.levels);
  const std::size_t required = gang.near.required;
  const DomainIndex home = required > 0 ? home_of(index, gang, required - 1) : kNoDomain;
  std::vector<std::vector<NodeIndex>> areas;
  const auto add = [&](const std::vector<DomainIndex>& level) {
    std::vector<NodeIndex>& area = areas.emplace_back();
    for (const DomainIndex domain : level) {
      std::ranges::copy(domains.domain(domain).nodes, std::back_inserter(area));
    }
    std::ranges::sort(area);
  };
  for (std::size_t level = gang.near.levels.size(); level > required; --level) {
    std::vector<DomainIndex> its;
    for (const auto& [domain, jobs] : running_in(index, gang, domains, level - 1)) {
      const bool is_at_home =
          home == kNoDomain || domains.at_level(domain, level - 1, required - 1) == home;
      if (is_at_home) its.push_back(domain);
    }
    if (!its.empty()) add(its);
  }
  if (required > 0) {
    add(home == kNoDomain ? domains.of_level(required - 1) : std::vector<DomainIndex>{home});
  }
  return areas;
}

std::vector<Area> areas_required(Index& index, const Gang* gang) {
  if (gang == nullptr || gang->near.required == 0) return {nullptr};
  const Domains& domains = index.domains_of(gang->near.levels);
  const std::size_t level = gang->near.required - 1;
  if (const DomainIndex home = home_of(index, *gang, level); home != kNoDomain) {
    return {&domains.domain(home).nodes};
  }
  std::vector<Area> areas;
  for (const DomainIndex domain : domains.of_level(level)) {
    if (is_one_of(gang->refused, index, domains, level, domain)) continue;
    areas.push_back(&domains.domain(domain).nodes);
  }
  return areas;
}

std::size_t idle_nodes(const Index& index, std::set<NodeIndex> nodes) {
  std::erase_if(nodes, [&](NodeIndex node) { return !index.ledger.holds(node).empty(); });
  return nodes.size();
}

}  // namespace gflow::engine
