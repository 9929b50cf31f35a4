// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "kube/neighbours_test.h"
#include "kube/scheduler.h"

namespace gflow::kube {
namespace {

constexpr int kGpus = 4;  // of each node

/// A cluster in which bindings take their time, and pods and nodes change, come and go meanwhile,
/// in batches. What is given out is counted apart from the scheduler, and who may be near whom is
/// looked up apart from it.
class Storm {
 public:
  enum class Pods { Alone, WithRules };

  Storm(unsigned seed, Pods pods) : random_(seed), has_rules_(pods == Pods::WithRules) {
    for (int i = 0; i < 3; ++i) put_node(fmt::format("n{}", i));
    for (const char* name : {"default", "team"}) label(name);
    scheduler_.know_name_spaces();
    scheduler_.begin(now());
  }

  void turn() {
    for (auto left = below(4); left > 0; --left) happen();
    const std::map<std::string, Standing> before = gangs();
    Decisions decisions = scheduler_.settle(now());
    for (const Evict& evict : decisions.evictions) {
      ASSERT_TRUE(pods_.contains(evict.uid)) << "one that is gone is evicted";
      ASSERT_FALSE(pods_.at(evict.uid).is_deleted) << evict.uid << " is leaving already";
      to_evict_.insert(evict.uid);
    }
    for (Bind& bind : decisions.binds) {
      ASSERT_TRUE(pods_.contains(bind.uid)) << "one that is gone is bound";
      ASSERT_FALSE(under_way_.contains(bind.uid)) << bind.uid << " is bound while it is";
      const std::string uid = bind.uid;
      ASSERT_EQ(refusal(pods_.at(uid), bind.node), "") << uid << " on " << bind.node;
      under_way_.emplace(uid, std::move(bind));
    }
    ASSERT_EQ(scheduler_.check(), "");
    verify();
    for (const auto& [name, now] : gangs()) verify(name, before, now);
  }

  /// Nothing comes any more, and nobody waits while others allow it a node where nothing is.
  void calm() {
    while (pods_.size() > 2) gone(pods_.begin()->first);
    for (int turns = 0; turns < 20; ++turns) {
      while (!under_way_.empty()) accept(under_way_.begin()->first);
      for (const auto& [uid, pod] : std::map(pods_)) {
        if (pod.is_deleted) gone(uid);
      }
      for (Bind& bind : scheduler_.settle(now()).binds)
        under_way_.emplace(bind.uid, std::move(bind));
      ASSERT_EQ(scheduler_.check(), "");
    }
    for (const auto& [uid, pod] : pods_) {
      if (pod.scheduler != "gflow" || pod.is_gated || !pod.node.empty() || lacks_others(pod))
        continue;
      if (has_rules_ && pod.gang) continue;  // there may be room for it, and not for all of them
      for (const auto& [name, node] : nodes_) {
        if (used_on(name) > 0) continue;
        ASSERT_NE(refusal(pod, name), "") << uid << " waits for nothing";
      }
    }
  }

 private:
  [[nodiscard]] std::size_t below(std::size_t most) { return random_() % most; }
  [[nodiscard]] Now now() {
    mono_ += std::chrono::minutes(2);  // no pause is still going on
    return {WallTime(std::chrono::hours(24 * 365 * 50)) + mono_, MonoTime(mono_)};
  }
  template <typename Map>
  [[nodiscard]] std::string any_of(const Map& map) {
    return std::next(map.begin(), static_cast<long>(below(map.size())))->first;
  }

  void put_node(const std::string& name) {
    Node node;
    node.name = name;
    node.uid = fmt::format("{}-{}", name, ++made_);
    node.allocatable = {{"cpu", 64000},
                        {"memory", std::int64_t{64} << 40},
                        {"pods", 110'000},
                        {"nvidia.com/gpu", kGpus * 1000}};
    node.labels = {{"host", name}};
    if (below(6) > 0) node.labels["zone"] = below(2) == 0 ? "a" : "b";
    nodes_[name] = node;
    scheduler_.put(node);
  }
  Pod new_pod() {
    Pod pod;
    pod.uid = pod.name = fmt::format("p{}", ++made_);
    pod.name_space = "default";
    pod.created = WallTime(std::chrono::seconds(made_));
    if (!has_rules_) return pod;
    if (below(4) == 0) pod.name_space = "team";
    rules_of_[pod.uid] = below(3) == 0 ? "{}" : kRules[below(kRules.size())];
    relabel(pod);
    return pod;
  }
  void relabel(Pod& pod) {
    pod.labels = {{"app", below(2) == 0 ? "web" : "db"}};
    const auto spec = nlohmann::json::parse(rules_of_.at(pod.uid));
    pod.rules = neighbour_rules_of(spec, pod.name_space, pod.labels);
  }
  void label(const std::string& name_space) {
    name_spaces_[name_space] = {{"of", below(2) == 0 ? "vision" : "audio"}};
    scheduler_.put(NameSpace{name_space, name_space, name_spaces_.at(name_space)});
  }
  void put(const Pod& pod) {
    pods_[pod.uid] = pod;
    scheduler_.put(pod);
  }
  // Names may be the keys of what goes.
  void gone(std::string uid) {
    pods_.erase(uid);
    scheduler_.pod_gone(uid);
  }

  void come() {
    Pod pod = new_pod();
    pod.scheduler = "gflow";
    pod.gpu = kWants[below(kWants.size())];
    if (below(5) == 0) pod.priority = 1000;
    put(pod);
  }
  void come_together() {
    const std::size_t size = 1 + below(4);
    const std::string name = fmt::format("g{}", made_);
    for (std::size_t i = 0; i < size; ++i) {
      Pod pod = new_pod();
      pod.scheduler = "gflow";
      pod.gpu = kWants[below(3)];
      pod.gang = GangWish{{GangSource::Pods, "default", name}, size};
      put(pod);
    }
  }
  void evict() {
    const std::string uid = *to_evict_.begin();
    to_evict_.erase(uid);
    if (!pods_.contains(uid) || below(3) == 0)
      return scheduler_.not_evicted(uid, {below(4) > 0, "it may not"});
    pods_.at(uid).is_deleted = true;
    scheduler_.put(pods_.at(uid));
  }
  /// One of another scheduler, where its kubelet has a GPU for it.
  void come_from_elsewhere() {
    Pod pod = new_pod();
    pod.node = any_of(nodes_);
    pod.requests["nvidia.com/gpu"] = 1000;
    if (used_on(pod.node) < kGpus) put(pod);
  }
  void change() {
    const auto at = pods_.find(any_of(pods_));
    if (!at->second.node.empty() || at->second.scheduler.empty()) return;
    at->second.gpu = kWants[below(kWants.size())];
    at->second.is_gated = below(4) == 0;
    scheduler_.put(at->second);
  }
  void change_labels() {
    if (below(4) == 0) return label("team");
    if (below(4) == 0) {
      Node& node = nodes_.at(any_of(nodes_));
      node.labels["zone"] = node.labels["zone"] == "a" ? "b" : "a";
      return scheduler_.put(node);
    }
    Pod& pod = pods_.at(any_of(pods_));
    relabel(pod);
    scheduler_.put(pod);
  }
  void lose_node() {
    const std::string name = any_of(nodes_);
    scheduler_.node_gone(nodes_.at(name).uid);
    nodes_.erase(name);
    for (const auto& [uid, pod] : std::map(pods_)) {
      if (pod.node == name) gone(uid);
    }
    put_node(name);
  }
  void accept(std::string uid) {
    const Bind bind = under_way_.extract(uid).mapped();
    const auto pod = pods_.find(uid);
    if (pod == pods_.end() || pod->second.is_gated) return scheduler_.not_bound(uid, "a conflict");
    pod->second.node = bind.node;
    pod->second.allocation = bind.allocation;
    const bool is_seen_first = below(2) == 0;
    if (is_seen_first) scheduler_.put(pod->second);
    scheduler_.bound(uid);
    if (!is_seen_first) scheduler_.put(pod->second);
  }
  void refuse(std::string uid) {
    under_way_.erase(uid);
    scheduler_.not_bound(uid, "a conflict");
  }
  void happen() {
    if (has_rules_ && !pods_.empty() && below(10) == 0) return change_labels();
    const auto kind = below(20);
    if (kind < 6) return come();
    if (kind == 6) return come_together();
    if (kind < 9) return come_from_elsewhere();
    if (kind == 9 && below(2) == 0) return lose_node();
    if (kind < 12 && !to_evict_.empty()) return evict();
    if (kind < 14 && !under_way_.empty()) return accept(any_of(under_way_));
    if (kind == 14 && !under_way_.empty()) return refuse(any_of(under_way_));
    if (kind < 17 && !pods_.empty()) return change();
    if (!pods_.empty()) gone(any_of(pods_));
  }

  /// Why others do not allow it there, of all that are on nodes or about to be.
  [[nodiscard]] std::string refusal(const Pod& pod, const std::string& name) const {
    oracle::There there{{}, {}, name_spaces_};
    for (const auto& [of, node] : nodes_) there.nodes.push_back(&node);
    for (const auto& [uid, one] : pods_) {
      const auto bind = under_way_.find(uid);
      const auto at = nodes_.find(bind == under_way_.end() ? one.node : bind->second.node);
      if (at != nodes_.end()) there.pods.push_back({&one, &at->second});
    }
    return oracle::refusal(pod, nodes_.at(name), there);
  }
  /// Devices of a node that somebody has, or is about to have.
  [[nodiscard]] int used_on(const std::string& node) const {
    std::map<int, int> parts;
    int others = 0;
    const auto count = [&](const std::string& allocation) {
      const auto chosen = read_chosen(allocation);
      if (!chosen) return;
      for (const Chosen& one : chosen->devices) parts[one.index] += one.share.parts;
    };
    for (const auto& [uid, pod] : pods_) {
      if (pod.node != node) continue;
      count(pod.allocation);
      others += static_cast<int>(amount_of(pod.requests, "nvidia.com/gpu") / 1000);
    }
    for (const auto& [uid, bind] : under_way_) {
      if (bind.node == node && pods_.contains(uid)) count(bind.allocation);
    }
    for (const auto& [index, used] : parts) EXPECT_LE(used, Share::kWholeParts) << node << index;
    return static_cast<int>(parts.size()) + others;
  }
  /// The pods of a gang: how many have a node, or wait for one.
  struct Standing {
    std::size_t active = 0;
    std::size_t waiting = 0;
    std::size_t least = 0;
  };
  [[nodiscard]] std::map<std::string, Standing> gangs() const {
    std::map<std::string, Standing> found;
    for (const auto& [uid, pod] : pods_) {
      if (!pod.gang || pod.is_deleted || pod.is_gated) continue;
      Standing& gang = found[pod.gang->name.name];
      gang.least = pod.gang->size;
      ++(pod.node.empty() && !under_way_.contains(uid) ? gang.waiting : gang.active);
    }
    return found;
  }
  /// Those that would start together with it are not there any more.
  [[nodiscard]] bool lacks_others(const Pod& pod) const {
    if (!pod.gang) return false;
    const Standing gang = gangs()[pod.gang->name.name];
    return gang.active == 0 && gang.waiting < gang.least;
  }
  /// None of it starts, or enough of it.
  static void verify(const std::string& name,
                     const std::map<std::string, Standing>& before,
                     const Standing& now) {
    const Standing& then = before.at(name);
    if (now.active == then.active || then.active > 0) return;
    ASSERT_GE(now.active, then.least) << name;
  }
  void verify() const {
    for (const auto& [name, node] : nodes_) ASSERT_LE(used_on(name), kGpus) << name;
  }

  inline static const std::vector<std::string> kWants = {"1", "2", "0.5", "0.25", "", "4"};
  inline static const std::vector<std::string> kRules = [] {
    const std::string web = R"("labelSelector": {"matchLabels": {"app": "web"}})";
    const auto required = [](const char* kind, const std::string& term) {
      return fmt::format(
          R"({{"affinity": {{"{}": {{"requiredDuringSchedulingIgnoredDuringExecution": [{{{}}}]}}}}}})",
          kind,
          term);
    };
    const auto spread = [](const std::string& rule) {
      return fmt::format(R"({{"topologySpreadConstraints": [{{{}}}]}})", rule);
    };
    const std::string zone = R"("topologyKey": "zone", )";
    const std::string host = R"("topologyKey": "host", )";
    return std::vector<std::string>{
        required("podAffinity", zone + web),
        required("podAffinity", host + web),
        required("podAntiAffinity", host + web),
        required("podAntiAffinity", zone + web),
        required("podAntiAffinity",
                 zone + web + R"(, "namespaceSelector": {"matchLabels": {"of": "vision"}})"),
        spread(zone + web + R"(, "maxSkew": 1)"),
        spread(zone + R"("maxSkew": 1, "labelSelector": {}, "matchLabelKeys": ["app"])"),
        spread(host + web + R"(, "maxSkew": 2, "minDomains": 3)")};
  }();
  std::mt19937 random_;
  bool has_rules_;
  Scheduler scheduler_{"gflow", engine::Policy{}};
  std::map<std::string, Node> nodes_;
  std::map<std::string, Pod> pods_;
  std::map<std::string, std::string> rules_of_;  ///< specs, by the uid of a pod
  std::map<std::string, Words> name_spaces_;
  std::map<std::string, Bind> under_way_;
  std::set<std::string> to_evict_;
  std::chrono::milliseconds mono_{1000};
  int made_ = 0;
};

void rage(Storm::Pods pods) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Storm storm(seed, pods);
    for (int turn = 0; turn < 150; ++turn) {
      storm.turn();
      if (testing::Test::HasFailure()) return;
    }
    storm.calm();
    if (testing::Test::HasFailure()) return;
  }
}

TEST(KubeSchedulerStorm, GivesNothingOutTwiceAndForgetsNobody) { rage(Storm::Pods::Alone); }

TEST(KubeSchedulerStorm, PutsNobodyWhereOthersDoNotAllowIt) { rage(Storm::Pods::WithRules); }

}  // namespace
}  // namespace gflow::kube
