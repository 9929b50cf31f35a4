// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kube/objects.h"

namespace gflow::kube {

/// What pods have to do with the pods about them: those alike in this, and in their wishes, are
/// judged alike.
struct Bonds {
  NeighbourRules rules;
  bool is_own_neighbour = false;  ///< it is one of those that it wants to be near
  std::vector<int> unwelcome;     ///< which rules of others keep it apart, by number

  [[nodiscard]] bool empty() const { return rules.empty() && unwelcome.empty(); }
  friend auto operator<=>(const Bonds&, const Bonds&) = default;
};

/// Which pods are near which, of all schedulers, as far as somebody minds: kube-scheduler's rules
/// of InterPodAffinity and PodTopologySpread. It counts for those that are watched, and for what
/// pods keep apart from themselves; who has nothing of this costs nothing but a place in a list.
///
/// Nodes and pods that it is told of stay where they are in memory until it is told otherwise.
class Neighbours {
 public:
  /// `changed`: where the names of nodes are put that may not take the same pods any more.
  explicit Neighbours(std::set<std::string>& changed) : changed_(changed) {}

  /// A node is there, with its labels and taints: before they change it leaves.
  void enter(const Node& node);
  void leave(const std::string& node);
  /// A pod is on the node, whether that is known or not: before its labels change it is removed.
  void add(const Pod& pod, const std::string& node);
  void remove(const Pod& pod, const std::string& node);
  /// A pod is there, on a node or not.
  void know(const Pod& pod);
  void forget(const Pod& pod);

  /// Without their labels, whoever goes by them waits.
  void know_name_spaces();
  [[nodiscard]] bool knows_name_spaces() const { return knows_name_spaces_; }
  void put(const NameSpace& name_space);
  void name_space_gone(const std::string& name);

  [[nodiscard]] Bonds bonds_of(const Pod& pod) const;
  /// Whether the bonds of some pods that are there may be others since this was asked.
  [[nodiscard]] bool take_news() { return std::exchange(has_news_, false); }

  /// From now on refusal() is asked for such pods; both stay where they are until it ends.
  void watch(int id, const Bonds& bonds, const Wishes& wishes);
  void unwatch(int id);
  /// Why they may not go to the node, in the words of kube-scheduler; "" if they may.
  [[nodiscard]] std::string refusal(int id, const Node& node) const;

  /// The first contradiction in words, or "".
  [[nodiscard]] std::string check() const;

 private:
  struct Place {
    const Node* node = nullptr;  ///< none: it is not there (yet)
    std::vector<const Pod*> pods;
  };
  /// How many pods there are in each domain that has some.
  struct Tally {
    std::string key;
    std::map<std::string, int> pods;

    [[nodiscard]] bool has_some_near(const Node& node) const;
    friend bool operator==(const Tally&, const Tally&) = default;
  };
  /// A rule by which pods keep others apart.
  struct Held {
    int id = 0;
    int known = 0;   ///< pods that have it
    int minded = 0;  ///< watches that it keeps apart
    Tally holders;   ///< pods on nodes that have it
  };
  struct Domain {
    int nodes = 0;
    int pods = 0;

    friend bool operator==(const Domain&, const Domain&) = default;
  };
  /// Of the nodes that count for a rule.
  struct Spreading {
    std::map<std::string, Domain> domains;
    std::map<int, int> levels;  ///< how many domains have so many pods

    /// As many pods may be in a domain, for one more to go there.
    [[nodiscard]] std::int64_t most_before(const Spread& rule) const;
    [[nodiscard]] int pods_in(const std::string& domain) const;
    friend bool operator==(const Spreading&, const Spreading&) = default;
  };
  struct Watch {
    const Bonds* bonds = nullptr;
    const Wishes* wishes = nullptr;
    std::vector<Tally> near;        ///< of each key, pods that are all of rules.near
    int neighbours = 0;             ///< the sum of these
    std::vector<Tally> apart;       ///< of each of rules.apart
    std::vector<Spreading> spread;  ///< of each of rules.spread

    friend bool operator==(const Watch&, const Watch&) = default;
  };

  /// The node's value of the key; none: it is in no domain.
  [[nodiscard]] static const std::string* domain_of(const Node& node, const std::string& key);
  [[nodiscard]] bool is_one(const Pod& pod, const NeighbourTerm& term) const;
  [[nodiscard]] bool is_all(const Pod& pod, const std::vector<NeighbourTerm>& terms) const;
  [[nodiscard]] bool lacks_name_spaces(const NeighbourRules& rules) const;
  [[nodiscard]] bool goes_near(const Watch& watch, const Node& node) const;
  [[nodiscard]] std::string refusal_of_spread(const Watch& watch, const Node& node) const;

  [[nodiscard]] static bool counts_on(const Node& node, const Spread& rule, const Watch& watch);
  void name_spaces_changed();
  // neighbours_count.cpp
  void count(const Pod& pod, const Node& node, int by);
  void count(Watch& watch, const Pod& pod, const Node& node, int by);
  void count(Watch& watch, const Node& node, int by);
  bool count(Tally& tally, const Node& node, int by, bool is_minded);
  void count(Spreading& spreading, const Spread& rule, const std::string& domain, Domain by);
  void count_all(Watch& watch);
  void touch(const std::string& key, const std::string& domain);
  void touch_all();
  void use(const std::string& key);

  std::set<std::string>& changed_;
  std::map<std::string, Place> places_;  ///< by the node's name
  /// Nodes of each domain of each topology key that was ever asked for.
  std::map<std::string, std::map<std::string, std::set<std::string>>> topologies_;
  std::map<NeighbourTerm, Held> held_;
  std::map<int, Held*> held_by_id_;
  int next_held_ = 0;
  std::map<int, Watch> watches_;
  std::map<std::string, Words> name_spaces_;  ///< their labels
  bool knows_name_spaces_ = false;
  bool has_news_ = false;
};

}  // namespace gflow::kube
