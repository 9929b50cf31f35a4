// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "kube/neighbours.h"
#include "kube/predicates.h"

/// How pods are counted for those who mind.
namespace gflow::kube {
namespace {

/// As kube-scheduler has it: a selector without conditions counts nobody, and who is being deleted
/// does not count.
bool is_counted(const Pod& pod, const Spread& rule) {
  return !pod.is_deleted && pod.name_space == rule.name_space && rule.pods && !rule.pods->empty() &&
         selects(rule.pods, pod.labels);
}

}  // namespace

const std::string* Neighbours::domain_of(const Node& node, const std::string& key) {
  const auto at = node.labels.find(key);
  return at == node.labels.end() ? nullptr : &at->second;
}

/// Nodes count for the rules of a pod that have all of its topology keys, and as the rule says.
bool Neighbours::counts_on(const Node& node, const Spread& rule, const Watch& watch) {
  const auto is_domain = [&node](const Spread& one) {
    return domain_of(node, one.topology_key) != nullptr;
  };
  return std::ranges::all_of(watch.bonds->rules.spread, is_domain) &&
         (!rule.honours_affinity || is_asked_for(node, *watch.wishes)) &&
         (!rule.honours_taints || is_tolerated(node, watch.wishes->tolerations));
}

bool Neighbours::Tally::has_some_near(const Node& node) const {
  const std::string* domain = domain_of(node, key);
  return domain != nullptr && pods.contains(*domain);
}

std::int64_t Neighbours::Spreading::most_before(const Spread& rule) const {
  const bool has_few = static_cast<int>(domains.size()) < rule.min_domains;
  const std::int64_t fewest = has_few || levels.empty() ? 0 : levels.begin()->first;
  return fewest + rule.max_skew - (rule.counts_itself ? 1 : 0);
}

int Neighbours::Spreading::pods_in(const std::string& domain) const {
  const auto at = domains.find(domain);
  return at == domains.end() ? 0 : at->second.pods;
}

void Neighbours::use(const std::string& key) {
  const auto [at, is_new] = topologies_.try_emplace(key);
  if (!is_new) return;
  for (const auto& [name, place] : places_) {
    if (place.node == nullptr) continue;
    if (const auto* domain = domain_of(*place.node, key)) at->second[*domain].insert(name);
  }
}

void Neighbours::count(const Pod& pod, const Node& node, int by) {
  for (const NeighbourTerm& term : pod.rules.apart) {
    Held& held = held_.at(term);
    (void)count(held.holders, node, by, held.minded > 0);
  }
  for (auto& [id, watch] : watches_) count(watch, pod, node, by);
}

void Neighbours::count(Watch& watch, const Pod& pod, const Node& node, int by) {
  const NeighbourRules& rules = watch.bonds->rules;
  if (is_all(pod, rules.near)) {
    const bool had_some = watch.neighbours > 0;
    for (Tally& tally : watch.near) {
      if (count(tally, node, by, true)) watch.neighbours += by;
    }
    const bool has_some = watch.neighbours > 0;
    if (had_some != has_some && watch.bonds->is_own_neighbour) touch_all();
  }
  for (std::size_t i = 0; i < rules.apart.size(); ++i) {
    if (is_one(pod, rules.apart[i])) (void)count(watch.apart[i], node, by, true);
  }
  for (std::size_t i = 0; i < rules.spread.size(); ++i) {
    const Spread& rule = rules.spread[i];
    if (!is_counted(pod, rule) || !counts_on(node, rule, watch)) continue;
    count(watch.spread[i], rule, *domain_of(node, rule.topology_key), {0, by});
  }
}

void Neighbours::count(Watch& watch, const Node& node, int by) {
  const std::vector<Spread>& rules = watch.bonds->rules.spread;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (!counts_on(node, rules[i], watch)) continue;
    count(watch.spread[i], rules[i], *domain_of(node, rules[i].topology_key), {by, 0});
  }
}

/// False on a node without the key, which is in no domain.
bool Neighbours::count(Tally& tally, const Node& node, int by, bool is_minded) {
  const std::string* domain = domain_of(node, tally.key);
  if (domain == nullptr) return false;
  const auto [at, is_first] = tally.pods.try_emplace(*domain, 0);
  at->second += by;
  const bool is_last = at->second == 0;
  if (is_last) tally.pods.erase(at);
  if (is_minded && is_first != is_last) touch(tally.key, *domain);
  return true;
}

void Neighbours::count(Spreading& spreading,
                       const Spread& rule,
                       const std::string& name,
                       Domain by) {
  const std::int64_t most_before = spreading.most_before(rule);
  Domain& domain = spreading.domains[name];
  const int pods_before = domain.pods;
  if (domain.nodes > 0 && --spreading.levels[domain.pods] == 0) {
    spreading.levels.erase(domain.pods);
  }
  domain.nodes += by.nodes;
  domain.pods += by.pods;
  if (domain.nodes > 0) ++spreading.levels[domain.pods];
  if (domain.nodes == 0) spreading.domains.erase(name);

  const std::int64_t most = spreading.most_before(rule);
  const auto note = [&](const std::string& of, int before, int now) {
    if ((before > most_before) != (now > most)) touch(rule.topology_key, of);
  };
  note(name, pods_before, spreading.pods_in(name));
  if (most == most_before) return;
  for (const auto& [other, nodes] : topologies_.at(rule.topology_key)) {
    if (other != name) note(other, spreading.pods_in(other), spreading.pods_in(other));
  }
}

/// Nodes first, so that the fewest pods of a domain are those of one that is there.
void Neighbours::count_all(Watch& watch) {
  const NeighbourRules& rules = watch.bonds->rules;
  for (const NeighbourTerm& term : rules.near) {
    use(term.topology_key);
    if (std::ranges::find(watch.near, term.topology_key, &Tally::key) == watch.near.end()) {
      watch.near.push_back({term.topology_key, {}});
    }
  }
  for (const NeighbourTerm& term : rules.apart) {
    use(term.topology_key);
    watch.apart.push_back({term.topology_key, {}});
  }
  for (const Spread& rule : rules.spread) use(rule.topology_key);
  watch.spread.resize(rules.spread.size());
  for (const auto& [name, place] : places_) {
    if (place.node != nullptr) count(watch, *place.node, 1);
  }
  if (rules.empty()) return;
  for (const auto& [name, place] : places_) {
    if (place.node == nullptr) continue;
    for (const Pod* pod : place.pods) count(watch, *pod, *place.node, 1);
  }
}

void Neighbours::touch(const std::string& key, const std::string& domain) {
  const auto& domains = topologies_.at(key);
  const auto nodes = domains.find(domain);
  if (nodes != domains.end()) changed_.insert(nodes->second.begin(), nodes->second.end());
}

void Neighbours::touch_all() {
  for (const auto& [name, place] : places_) {
    if (place.node != nullptr) changed_.insert(name);
  }
}

std::string Neighbours::check() const {
  std::set<std::string> changed;
  Neighbours anew(changed);
  anew.name_spaces_ = name_spaces_;
  anew.knows_name_spaces_ = knows_name_spaces_;
  for (const auto& [key, domains] : topologies_) anew.use(key);
  for (const auto& [name, place] : places_) {
    if (place.node != nullptr) anew.enter(*place.node);
    for (const Pod* pod : place.pods) {
      anew.know(*pod);
      anew.add(*pod, name);
    }
  }
  if (anew.topologies_ != topologies_) return "nodes are in other domains";
  for (const auto& [term, held] : held_) {
    const auto at = anew.held_.find(term);
    const Tally none{term.topology_key, {}};
    if (held.holders != (at == anew.held_.end() ? none : at->second.holders)) {
      return fmt::format("other pods have rule {}", held.id);
    }
  }
  for (const auto& [id, watch] : watches_) {
    anew.watch(id, *watch.bonds, *watch.wishes);
    if (anew.watches_.at(id) != watch) return fmt::format("class {} has other neighbours", id);
  }
  return {};
}

}  // namespace gflow::kube
