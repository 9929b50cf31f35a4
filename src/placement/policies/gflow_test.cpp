// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "placement/placer.h"
#include "placement/policies/policies.h"

namespace gflow::placement {
namespace {

Node node_of(std::string name, std::string model, int devices, std::int64_t cpus) {
  Node node{.name = std::move(name), .milli_cpus = cpus * 1000, .memory = Memory::gib(256)};
  node.devices.resize(static_cast<std::size_t>(devices), {.vendor = "nvidia", .model = model});
  return node;
}

Demand whole_gpus(int gpus, std::int64_t cpus = 0) {
  return {.gpus = gpus, .milli_cpus = cpus * 1000};
}

Demand part_of_one(int percent, std::int64_t cpus = 0) {
  return {.gpus = 1,
          .share = Share::percent(percent),
          .mode = GpuMode::Fraction,
          .milli_cpus = cpus * 1000};
}

Profile profile_for(std::vector<DemandClass> classes) {
  return profile_of(std::span<const DemandClass>(classes));
}

struct Held {
  Demand demand;
  Placement placement;
};

struct Case {
  std::string name;
  std::vector<Node> nodes;
  std::vector<Held> held;
  std::vector<DemandClass> expected;  // what will be asked for
  Demand demand;
  Placement choice;
};

Placement choose(const Case& c, int departures) {
  Ledger ledger;
  for (const Node& node : c.nodes) ledger.put(node);
  for (const Held& held : c.held) ledger.take(ledger.intern(held.demand), held.placement);
  const DemandIndex demand = ledger.intern(c.demand);
  Placer placer(find_policy("gflow")->make({}), profile(c.expected));
  placer.arrived(ledger, demand);
  for (int i = 0; i < departures; ++i) placer.departed(ledger);
  const auto choice = placer.choose(ledger, demand);
  return choice ? choice->placements.front() : Placement{.node = -1, .devices = {}};
}

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      {"fills a device exactly",
       {node_of("a", "A100", 2, 64)},
       {{part_of_one(50), {0, {0}}}, {part_of_one(70), {0, {1}}}},
       {{part_of_one(30), 1}, {part_of_one(50), 1}},
       part_of_one(30),
       {0, {1}}},
      {"leaves a remainder that is asked for, rather than the least",
       // 30 out of 60 leaves 30, which is asked for; 30 out of 50 leaves 20, which is not.
       {node_of("a", "A100", 2, 64)},
       {{part_of_one(40), {0, {0}}}, {part_of_one(50), {0, {1}}}},
       {{part_of_one(30), 5}, {part_of_one(50), 5}},
       part_of_one(30),
       {0, {0}}},
      {"keeps whole devices whole",
       {node_of("a", "A100", 1, 64), node_of("b", "A100", 1, 64)},
       {{part_of_one(40), {1, {0}}}},
       {{part_of_one(40), 5}, {whole_gpus(1), 5}},
       part_of_one(40),
       {1, {0}}},
      {"leaves devices CPUs that jobs will need",
       // On a, what is left would be a device with 2 CPUs, and jobs want 8.
       {node_of("a", "A100", 2, 16), node_of("b", "A100", 2, 64)},
       {},
       {{whole_gpus(1, 8), 20}, {whole_gpus(1, 14), 1}},
       whole_gpus(1, 14),
       {1, {0}}},
      {"jobs without devices go where CPUs are to spare",
       {node_of("a", "A100", 4, 32), node_of("b", "A100", 4, 128)},
       {},
       {{whole_gpus(1, 8), 20}, {whole_gpus(0, 16), 1}},
       whole_gpus(0, 16),
       {1, {}}},
      {"keeps scarce models for jobs that need them",
       {node_of("a", "T4", 1, 64), node_of("b", "A100", 1, 64)},
       {},
       {{whole_gpus(1), 5}, {{.gpus = 1, .models = {"T4"}}, 5}},
       whole_gpus(1),
       {1, {0}}},
      {"gives them to those",
       {node_of("a", "A100", 1, 64), node_of("b", "T4", 1, 64)},
       {},
       {{whole_gpus(1), 5}, {{.gpus = 1, .models = {"T4"}}, 5}},
       {.gpus = 1, .models = {"T4"}},
       {1, {0}}},
      {"takes the only node that fits",
       {node_of("a", "A100", 1, 64), node_of("b", "A100", 4, 64)},
       {},
       {{whole_gpus(1), 5}},
       whole_gpus(3),
       {1, {0, 1, 2}}},
      {"nothing is known of demand: the first of equals",
       {node_of("a", "A100", 2, 64), node_of("b", "A100", 2, 64)},
       {},
       {},
       part_of_one(50),
       {0, {0}}},
  };
  return kCases;
}

TEST(Gflow, PlacesWhereWhatIsLeftWillBeUsed) {
  for (const Case& c : cases()) {
    EXPECT_EQ(choose(c, 0), c.choice) << c.name;
    EXPECT_EQ(choose(c, 1), c.choice) << c.name << ", jobs leaving";
  }
}

TEST(Gflow, KeepsNodesWholeOnceJobsLeave) {
  const Case c{"",
               {node_of("a", "A100", 8, 96), node_of("b", "A100", 8, 96)},
               {{whole_gpus(5, 10), {1, {0, 1, 2, 3, 4}}}},
               {{whole_gpus(1, 2), 8}, {whole_gpus(8, 16), 2}},
               whole_gpus(1, 2),
               {1, {5}}};
  EXPECT_EQ(choose(c, 1), c.choice);
}

class Watched {
 public:
  Watched()
      : placer_(find_policy("gflow")->make({}),
                profile_for({{whole_gpus(1), 1}, {part_of_one(30), 1}})) {
    for (const char* name : {"a", "b", "c", "d"}) ledger_.put(node_of(name, "A100", 4, 32));
    demand_ = ledger_.intern(part_of_one(30));
  }
  void arrive(int n) {
    for (int i = 0; i < n; ++i) placer_.arrived(ledger_, demand_);
  }
  void depart(int n) {
    for (int i = 0; i < n; ++i) placer_.departed(ledger_);
  }
  /// Small nodes count for something only while jobs leave.
  bool is_turning_over() {
    const std::vector<Ranked> ranking = placer_.rank(ledger_, demand_, 1);
    for (const Term& term : ranking.front().terms) {
      if (term.name.starts_with("size of the node")) return term.value > 0;
    }
    return false;
  }

 private:
  Ledger ledger_;
  Placer placer_;
  DemandIndex demand_ = 0;
};

TEST(Gflow, SeesByItselfWhetherJobsLeave) {
  Watched watched;
  EXPECT_FALSE(watched.is_turning_over());
  watched.arrive(80);
  watched.depart(9);
  EXPECT_FALSE(watched.is_turning_over());
  watched.depart(1);
  EXPECT_TRUE(watched.is_turning_over());
  watched.arrive(80);  // 10 of 160: not yet rare
  EXPECT_TRUE(watched.is_turning_over());
  watched.arrive(1);
  EXPECT_FALSE(watched.is_turning_over());
}

TEST(Gflow, TermsAddUpToTheScore) {
  Ledger ledger;
  ledger.put(node_of("a", "T4", 2, 64));
  ledger.put(node_of("b", "A100", 8, 96));
  ledger.take(ledger.intern(part_of_one(20, 3)), {1, {2}});
  const Profile expected = profile_for({{part_of_one(30, 4), 3},
                                        {whole_gpus(1, 8), 3},
                                        {whole_gpus(8, 64), 1},
                                        {{.gpus = 1, .models = {"T4"}}, 1},
                                        {whole_gpus(0, 9), 1}});
  for (const int departures : {0, 5}) {
    Placer placer(find_policy("gflow")->make({}), expected);
    for (int i = 0; i < departures; ++i) placer.departed(ledger);
    for (const Demand& asked : {part_of_one(30, 4), whole_gpus(2, 8), whole_gpus(0, 9)}) {
      const DemandIndex demand = ledger.intern(asked);
      const std::vector<Ranked> ranking = placer.rank(ledger, demand, 2);
      ASSERT_EQ(ranking.size(), 2U);
      for (const Ranked& ranked : ranking) {
        double sum = 0;
        for (const Term& term : ranked.terms) sum += term.weight * term.value;
        EXPECT_NEAR(sum, ranked.score, 2.0) << departures << " " << asked.gpus;
      }
    }
  }
}

}  // namespace
}  // namespace gflow::placement
