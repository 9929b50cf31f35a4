// SPDX-License-Identifier: Apache-2.0
#include "kube/neighbours.h"

#include <algorithm>

namespace gflow::kube {
namespace {

/// Whether it depends on labels of namespaces: all there are are known without.
bool minds_labels(const NeighbourTerm& term) {
  return term.name_space_selector && !term.name_space_selector->empty();
}

bool minds_labels(const NeighbourRules& rules) {
  const auto does = [](const NeighbourTerm& term) { return minds_labels(term); };
  return std::ranges::any_of(rules.near, does) || std::ranges::any_of(rules.apart, does);
}

}  // namespace

void Neighbours::enter(const Node& node) {
  Place& place = places_[node.name];
  place.node = &node;
  for (auto& [key, domains] : topologies_) {
    if (const auto* domain = domain_of(node, key)) domains[*domain].insert(node.name);
  }
  for (auto& [id, watch] : watches_) count(watch, node, 1);
  for (const Pod* pod : place.pods) count(*pod, node, 1);
}

void Neighbours::leave(const std::string& name) {
  const auto at = places_.find(name);
  if (at == places_.end() || at->second.node == nullptr) return;
  const Node& node = *std::exchange(at->second.node, nullptr);
  for (const Pod* pod : at->second.pods) count(*pod, node, -1);
  for (auto& [id, watch] : watches_) count(watch, node, -1);
  for (auto& [key, domains] : topologies_) {
    const auto* domain = domain_of(node, key);
    if (domain == nullptr) continue;
    const auto nodes = domains.find(*domain);
    nodes->second.erase(name);
    if (nodes->second.empty()) domains.erase(nodes);
  }
  if (at->second.pods.empty()) places_.erase(at);
}

void Neighbours::add(const Pod& pod, const std::string& node) {
  Place& place = places_[node];
  place.pods.push_back(&pod);
  if (place.node != nullptr) count(pod, *place.node, 1);
}

void Neighbours::remove(const Pod& pod, const std::string& node) {
  const auto at = places_.find(node);
  Place& place = at->second;
  if (place.node != nullptr) count(pod, *place.node, -1);
  place.pods.erase(std::ranges::find(place.pods, &pod));
  if (place.pods.empty() && place.node == nullptr) places_.erase(at);
}

void Neighbours::know(const Pod& pod) {
  for (const NeighbourTerm& term : pod.rules.apart) {
    const auto [at, is_new] = held_.try_emplace(term);
    Held& held = at->second;
    ++held.known;
    if (!is_new) continue;
    held.id = next_held_++;
    held.holders.key = term.topology_key;
    held_by_id_[held.id] = &held;
    use(term.topology_key);
    has_news_ = true;
  }
}

void Neighbours::forget(const Pod& pod) {
  for (const NeighbourTerm& term : pod.rules.apart) {
    const auto at = held_.find(term);
    if (--at->second.known > 0) continue;
    held_by_id_.erase(at->second.id);
    held_.erase(at);
    has_news_ = true;
  }
}

void Neighbours::know_name_spaces() {
  if (std::exchange(knows_name_spaces_, true)) return;
  name_spaces_changed();
}

void Neighbours::put(const NameSpace& name_space) {
  Words& labels = name_spaces_[name_space.name];
  if (labels == name_space.labels) return;
  labels = name_space.labels;
  name_spaces_changed();
}

void Neighbours::name_space_gone(const std::string& name) {
  if (name_spaces_.erase(name) > 0) name_spaces_changed();
}

void Neighbours::name_spaces_changed() {
  if (!knows_name_spaces_) return;
  for (auto& [id, watch] : watches_) {
    if (!minds_labels(watch.bonds->rules)) continue;
    watch = Watch{watch.bonds, watch.wishes};
    count_all(watch);
    touch_all();
    has_news_ = true;
  }
  const auto does_mind = [](const auto& held) { return minds_labels(held.first); };
  has_news_ = has_news_ || std::ranges::any_of(held_, does_mind);
}

bool Neighbours::is_one(const Pod& pod, const NeighbourTerm& term) const {
  const auto is_selected = [&] {
    if (!term.name_space_selector) return false;
    if (!knows_name_spaces_) return true;  // perhaps not: nobody is put too near
    const auto labels = name_spaces_.find(pod.name_space);
    return selects(term.name_space_selector,
                   labels == name_spaces_.end() ? Words{} : labels->second);
  };
  const bool is_there =
      std::ranges::binary_search(term.name_spaces, pod.name_space) || is_selected();
  return is_there && selects(term.pods, pod.labels);
}

bool Neighbours::is_all(const Pod& pod, const std::vector<NeighbourTerm>& terms) const {
  return !terms.empty() &&
         std::ranges::all_of(terms, [&](const NeighbourTerm& term) { return is_one(pod, term); });
}

Bonds Neighbours::bonds_of(const Pod& pod) const {
  Bonds bonds{pod.rules, is_all(pod, pod.rules.near), {}};
  for (const auto& [term, held] : held_) {
    if (is_one(pod, term)) bonds.unwelcome.push_back(held.id);
  }
  std::ranges::sort(bonds.unwelcome);
  return bonds;
}

void Neighbours::watch(int id, const Bonds& bonds, const Wishes& wishes) {
  if (bonds.empty()) return;
  Watch& watch = watches_[id];
  watch = Watch{&bonds, &wishes};
  count_all(watch);
  for (const int held : bonds.unwelcome) {
    if (const auto at = held_by_id_.find(held); at != held_by_id_.end()) ++at->second->minded;
  }
}

void Neighbours::unwatch(int id) {
  const auto at = watches_.find(id);
  if (at == watches_.end()) return;
  for (const int held : at->second.bonds->unwelcome) {
    if (const auto of = held_by_id_.find(held); of != held_by_id_.end()) --of->second->minded;
  }
  watches_.erase(at);
}

bool Neighbours::lacks_name_spaces(const NeighbourRules& rules) const {
  return !knows_name_spaces_ && minds_labels(rules);
}

bool Neighbours::goes_near(const Watch& watch, const Node& node) const {
  const auto is_domain = [&node](const Tally& tally) {
    return domain_of(node, tally.key) != nullptr;
  };
  const auto is_near = [&node](const Tally& tally) { return tally.has_some_near(node); };
  if (!std::ranges::all_of(watch.near, is_domain)) return false;
  const bool is_first = watch.neighbours == 0 && watch.bonds->is_own_neighbour;
  return is_first || std::ranges::all_of(watch.near, is_near);
}

std::string Neighbours::refusal_of_spread(const Watch& watch, const Node& node) const {
  const std::vector<Spread>& rules = watch.bonds->rules.spread;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const Spreading& spreading = watch.spread[i];
    const std::string* domain = domain_of(node, rules[i].topology_key);
    if (domain == nullptr) {
      return "node(s) didn't match pod topology spread constraints (missing required label)";
    }
    if (spreading.pods_in(*domain) > spreading.most_before(rules[i])) {
      return "node(s) didn't match pod topology spread constraints";
    }
  }
  return {};
}

std::string Neighbours::refusal(int id, const Node& node) const {
  const auto at = watches_.find(id);
  if (at == watches_.end()) return {};
  const Watch& watch = at->second;
  if (lacks_name_spaces(watch.bonds->rules)) {
    return "node(s) were not judged, as labels of namespaces cannot be read";
  }
  if (std::string spread = refusal_of_spread(watch, node); !spread.empty()) return spread;
  if (!goes_near(watch, node)) return "node(s) didn't match pod affinity rules";
  const auto is_near = [&node](const Tally& tally) { return tally.has_some_near(node); };
  if (std::ranges::any_of(watch.apart, is_near)) {
    return "node(s) didn't match pod anti-affinity rules";
  }
  for (const int held : watch.bonds->unwelcome) {
    const auto of = held_by_id_.find(held);
    if (of == held_by_id_.end() || !of->second->holders.has_some_near(node)) continue;
    return "node(s) didn't satisfy existing pods anti-affinity rules";
  }
  return {};
}

}  // namespace gflow::kube
