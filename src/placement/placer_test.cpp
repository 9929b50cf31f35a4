// SPDX-License-Identifier: Apache-2.0
#include "placement/placer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>

namespace gflow::placement {
namespace {

class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool one_in(int n) { return below(n) == 0; }
  template <typename T>
  const T& of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(below(static_cast<int>(values.size())))];
  }

 private:
  std::mt19937 random_;
};

Node random_node(Dice& dice, int number) {
  static const std::vector<std::string> kModels = {"T4", "P100", "A10"};
  Node node{.name = "node-" + std::to_string(number),
            .milli_cpus = 8'000 * (1 + dice.below(12)),
            .memory = Memory::gib(64)};
  if (dice.one_in(2)) node.labels = {{.key = "zone", .value = "a"}};
  const std::string model = dice.of(kModels);
  const Memory memory = dice.one_in(2) ? Memory{} : Memory::gib(16);
  const bool mixed = dice.one_in(8);
  for (int left = dice.below(9); left > 0; --left) {
    node.devices.push_back({.vendor = "nvidia",
                            .model = mixed ? dice.of(kModels) : model,
                            .memory = memory,
                            .usable = !dice.one_in(20)});
  }
  return node;
}

Demand random_demand(Dice& dice) {
  Demand demand{.milli_cpus = 1'000 * dice.below(16), .memory = Memory::gib(dice.below(12))};
  switch (dice.below(6)) {
    case 0:
      break;
    case 1:
    case 2:
      demand.gpus = 1 + dice.below(4);
      break;
    case 3:
      demand.gpus = 1;
      demand.mode = GpuMode::TimeSlice;
      break;
    default:
      demand.gpus = dice.one_in(6) ? 2 : 1;
      demand.mode = GpuMode::Fraction;
      demand.share = Share::milli(10 * (1 + dice.below(99)));
  }
  if (demand.gpus > 0 && dice.one_in(4)) demand.gpu_memory = Memory::gib(1 + dice.below(8));
  if (demand.gpus > 0 && dice.one_in(3)) demand.models = {"P100", "T4"};
  if (dice.one_in(6)) demand.nodes = 2 + dice.below(2);
  if (dice.one_in(8)) demand.selector = {{.key = "zone", .value = "a"}};
  return demand;
}

/// A cluster in the course of its life, and the demands of those who use it.
struct Life {
  explicit Life(unsigned seed) : dice(seed), ledger({.mix_modes = dice.one_in(3)}) {
    for (int i = 0; i < 12; ++i) demands.push_back(ledger.intern(random_demand(dice)));
    for (int i = 5 + dice.below(120); i > 0; --i) ledger.put(random_node(dice, ledger.size()));
  }

  [[nodiscard]] Profile profile() {
    std::vector<DemandClass> kinds;
    for (const DemandIndex demand : demands) {
      kinds.push_back({.demand = ledger.demand(demand), .count = 1 + dice.below(50)});
    }
    return profile_of(kinds);
  }
  void take(DemandIndex demand, const Choice& choice) {
    for (const Placement& placement : choice.placements) {
      ledger.take(demand, placement);
      held.push_back({demand, placement});
    }
  }
  /// Something ends or is suspended, or a node changes or is new.
  void go_on() {
    if (!held.empty() && !dice.one_in(4)) {
      const auto one = held.begin() + dice.below(static_cast<int>(held.size()));
      ledger.give_back(one->demand, one->placement, one->presence);
      const bool ends = one->presence != Presence::Working || !dice.one_in(4);
      if (!ends) {
        constexpr std::array kAfter{Presence::Suspended, Presence::Parking, Presence::Parked};
        one->presence = kAfter.at(static_cast<std::size_t>(dice.below(3)));
        ledger.take(one->demand, one->placement, one->presence);
      } else {
        held.erase(one);
      }
      return;
    }
    if (dice.one_in(4)) {
      ledger.put(random_node(dice, ledger.size()));
      return;
    }
    Node node = ledger.node(dice.below(ledger.size()));
    node.drained = !node.drained;
    ledger.put(std::move(node));
  }

  Dice dice;
  Ledger ledger;
  std::vector<DemandIndex> demands;
  struct Held {
    DemandIndex demand = 0;
    Placement placement;
    Presence presence = Presence::Working;
  };
  std::vector<Held> held;
};

/// A question about a node that keeps what it points to.
struct Asked {
  Asked(const Policy& policy, const Ledger& ledger, DemandIndex demand, NodeIndex node)
      : view(view_of(ledger, node)) {
    view.worth = policy.worth(ledger, view);
    for (const DeviceState& device : ledger.state(node).devices) {
      const bool fits = ledger.demand(demand).gpus > 0 && ledger.device_fits(demand, device);
      fitting.push_back(fits ? 1 : 0);
    }
  }
  [[nodiscard]] Question question(const Ledger& ledger, DemandIndex demand) const {
    return {.ledger = ledger,
            .index = demand,
            .demand = ledger.demand(demand),
            .node = view,
            .fits = fitting};
  }

  NodeView view;
  std::vector<std::uint8_t> fitting;
};

/// The first of the best nodes, by asking about each.
std::optional<std::pair<NodeIndex, Score>> best_by_looking(const Policy& policy,
                                                           const Ledger& ledger,
                                                           DemandIndex demand,
                                                           const std::vector<NodeIndex>& left_out) {
  std::optional<std::pair<NodeIndex, Score>> best;
  for (NodeIndex node = 0; node < ledger.size(); ++node) {
    if (!ledger.fits(demand, node) || std::ranges::count(left_out, node) > 0) continue;
    const Asked asked(policy, ledger, demand, node);
    const Score score = policy.score(asked.question(ledger, demand));
    if (!best || score > best->second) best = {node, score};
  }
  return best;
}

void expect_first_of_the_best(Placer& placer,
                              const Ledger& ledger,
                              DemandIndex demand,
                              const Choice& choice,
                              std::vector<NodeIndex> left_out) {
  const Policy& policy = placer.policy();
  for (const Placement& placement : choice.placements) {
    const auto best = best_by_looking(policy, ledger, demand, left_out);
    ASSERT_TRUE(best.has_value());
    EXPECT_EQ(std::ranges::count(left_out, placement.node), 0);
    EXPECT_TRUE(ledger.fits(demand, placement.node));
    const Asked asked(policy, ledger, demand, placement.node);
    if (!policy.traits().draws) {
      EXPECT_EQ(placement.node, best->first);
      if (ledger.demand(demand).gpus > 0) {
        EXPECT_EQ(placement.devices, policy.devices(asked.question(ledger, demand)));
      }
    }
    ASSERT_EQ(std::ssize(placement.devices), ledger.demand(demand).gpus);
    EXPECT_TRUE(std::ranges::is_sorted(placement.devices, std::ranges::less_equal{}));
    for (const int device : placement.devices) {
      EXPECT_EQ(asked.fitting[static_cast<std::size_t>(device)], 1);
    }
    left_out.push_back(placement.node);
  }
}

class EveryPolicy : public testing::TestWithParam<PolicyEntry> {};

TEST_P(EveryPolicy, ChoosesTheFirstOfTheBestWhateverHappened) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Life life(seed);
    Placer placer(GetParam().make({}), life.profile());
    for (int step = 0; step < 120 && !HasFailure(); ++step) {
      const DemandIndex demand = life.dice.of(life.demands);
      std::vector<NodeIndex> left_out;
      if (life.dice.one_in(3)) left_out.push_back(life.dice.below(life.ledger.size()));
      const auto choice = placer.choose(life.ledger, demand, left_out);
      EXPECT_EQ(choice, placer.choose_by_scan(life.ledger, demand, left_out));
      if (choice) {
        ASSERT_EQ(std::ssize(choice->placements), life.ledger.demand(demand).nodes);
        expect_first_of_the_best(placer, life.ledger, demand, *choice, left_out);
        life.take(demand, *choice);
        ASSERT_EQ(life.ledger.check(), "");
      } else {
        int fitting = 0;
        for (NodeIndex node = 0; node < life.ledger.size(); ++node) {
          const bool counts = std::ranges::count(left_out, node) == 0;
          if (counts && life.ledger.fits(demand, node)) ++fitting;
        }
        EXPECT_LT(fitting, life.ledger.demand(demand).nodes);
      }
      if (!choice || life.dice.one_in(2)) life.go_on();
    }
  }
}

TEST_P(EveryPolicy, IsRankedByScoreAndExplained) {
  Life life(5);
  Placer placer(GetParam().make({}), life.profile());
  for (const DemandIndex demand : life.demands) {
    const auto ranking = placer.rank(life.ledger, demand, 5);
    const auto choice = placer.choose(life.ledger, demand);
    EXPECT_LE(ranking.size(), 5U);
    EXPECT_TRUE(std::ranges::is_sorted(ranking, std::greater{}, &Ranked::score));
    if (choice && !placer.policy().traits().draws) {
      ASSERT_FALSE(ranking.empty());
      EXPECT_EQ(ranking.front().node, choice->placements.front().node);
      EXPECT_EQ(ranking.front().devices, choice->placements.front().devices);
    }
    for (const Ranked& ranked : ranking) EXPECT_FALSE(ranked.terms.empty());
  }
}

/// How many other sets of devices are named; each is checked.
std::size_t named_others(Placer& placer, const Life& life) {
  std::size_t others = 0;
  for (const DemandIndex demand : life.demands) {
    for (const Ranked& ranked : placer.rank(life.ledger, demand, 5)) {
      std::vector<std::vector<int>> sets = {ranked.devices};
      for (const DeviceChoice& other : ranked.others) {
        ++others;
        EXPECT_EQ(other.devices.size(), ranked.devices.size());
        EXPECT_EQ(std::ranges::count(sets, other.devices), 0) << "a set is named once";
        sets.push_back(other.devices);
        for (const int device : other.devices) {
          const auto& state = life.ledger.state(ranked.node).devices;
          EXPECT_TRUE(life.ledger.device_fits(demand, state[static_cast<std::size_t>(device)]));
        }
      }
    }
  }
  return others;
}

TEST_P(EveryPolicy, NamesOtherDevicesThatWouldDoToo) {
  std::size_t others = 0;
  for (unsigned seed = 1; seed <= 6; ++seed) {  // one that packs may find nothing else in one life
    Life life(seed);
    Placer placer(GetParam().make({}), life.profile());
    for (int i = 0; i < 3; ++i, life.go_on()) others += named_others(placer, life);
  }
  EXPECT_GT(others, 0U);
}

TEST_P(EveryPolicy, LearnsFromWhatArrives) {
  Life life(9);
  Placer learning(GetParam().make({}));
  for (int i = 0; i < 40; ++i) {
    const DemandIndex demand = life.dice.of(life.demands);
    learning.arrived(life.ledger, demand);
    const auto choice = learning.choose(life.ledger, demand);
    EXPECT_EQ(choice, learning.choose_by_scan(life.ledger, demand));
    if (choice) life.take(demand, *choice);
  }
  EXPECT_FALSE(learning.profile().classes.empty());
}

INSTANTIATE_TEST_SUITE_P(Placer,
                         EveryPolicy,
                         testing::ValuesIn(policies().begin(), policies().end()),
                         [](const auto& param) {
                           std::string name(param.param.name);
                           std::erase(name, '-');
                           return name;
                         });

/// A GPU is cut otherwise while others of its node stay: as many devices, one of a kind that none
/// had when the tables were made.
TEST(Placer, KnowsADeviceOfAKindThatCameLater) {
  Node node{.name = "n", .milli_cpus = 8'000};
  node.devices = {{.vendor = "nvidia", .model = "H100"}, {.vendor = "nvidia", .model = "T4"}};
  for (const PolicyEntry& policy : policies()) {
    Ledger ledger;
    ledger.put(node);
    Placer placer(policy.make({}));
    const DemandIndex one = ledger.intern({.gpus = 1});
    ASSERT_TRUE(placer.choose(ledger, one)) << policy.name;
    Node later = node;
    for (const char* model : {"H100-3g.40gb", "H100-2g.20gb", "H100-1g.10gb", "A30"}) {
      later.devices.front().model = model;
      ledger.put(later);
      EXPECT_TRUE(placer.choose(ledger, one)) << policy.name << ", " << model;
    }
  }
}

TEST(PlacerTopology, ChoosesWholeDevicesByTheirLinks) {
  // Two pairs, linked crosswise: 0-2 and 1-3.
  auto topology = std::make_shared<Topology>(plain_topology(4, PathClass::Phb));
  const auto link = [&topology](int a, int b) {
    topology->links[static_cast<std::size_t>(a * 4 + b)] = 2;
    topology->links[static_cast<std::size_t>(b * 4 + a)] = 2;
  };
  link(0, 2);
  link(1, 3);
  topology->speeds = speeds_of_model("Tesla V100-SXM2-32GB");
  Node node{.name = "n", .milli_cpus = 8'000, .topology = topology};
  node.devices.resize(4, {.vendor = "nvidia", .model = "V100"});
  Ledger ledger;
  ledger.put(node);
  const DemandIndex two = ledger.intern({.gpus = 2});
  for (const PolicyEntry& policy : policies()) {
    Placer placer(policy.make({}));
    const auto choice = placer.choose(ledger, two);
    ASSERT_TRUE(choice.has_value()) << policy.name;
    const std::vector<int>& devices = choice->placements.front().devices;
    EXPECT_TRUE((devices == std::vector{0, 2}) || (devices == std::vector{1, 3})) << policy.name;
    EXPECT_GT(choice->reasons.front().mb_per_second, 0) << policy.name;
  }
}

}  // namespace
}  // namespace gflow::placement
