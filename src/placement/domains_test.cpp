// SPDX-License-Identifier: Apache-2.0
#include "placement/domains.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace gflow::placement {
namespace {

using Levels = std::vector<std::string>;
using Nodes = std::vector<NodeIndex>;

/// Labels are sorted, as a ledger has them.
Node node(const std::string& name, std::vector<Label> labels, int gpus = 0) {
  Node made{.name = name, .labels = std::move(labels), .milli_cpus = 8'000};
  made.memory = Memory::gib(64);
  for (int i = 0; i < gpus; ++i) made.devices.push_back({.vendor = "nvidia", .model = "T4"});
  return made;
}

class DomainsOfALedger : public testing::Test {
 protected:
  DomainsOfALedger() {
    ledger.put(node("n0", {{"block", "a"}, {"rack", "1"}}));
    ledger.put(node("n1", {{"block", "a"}, {"rack", "2"}}));
    ledger.put(node("n2", {{"block", "b"}, {"rack", "1"}}));
    ledger.put(node("n3", {{"block", "a"}, {"rack", "1"}}));
    ledger.put(node("n4", {{"block", "a"}}));
    ledger.put(node("n5", {{"rack", "1"}}));
    ledger.put(node("n6", {}));
  }
  static Nodes nodes_of(const Domains& domains, NodeIndex node, std::size_t level) {
    const DomainIndex domain = domains.of(node, level);
    return domain == kNoDomain ? Nodes{} : domains.domain(domain).nodes;
  }

  Ledger ledger;
};

TEST_F(DomainsOfALedger, HaveTheSameValuesOfAllLabelsDownToTheirLevel) {
  const Domains domains(ledger, {"block", "rack"});
  EXPECT_EQ(nodes_of(domains, 0, 0), (Nodes{0, 1, 3, 4}));
  EXPECT_EQ(nodes_of(domains, 2, 0), Nodes{2});
  EXPECT_EQ(nodes_of(domains, 0, 1), (Nodes{0, 3})) << "rack 1 of block b is another";
  EXPECT_EQ(nodes_of(domains, 2, 1), Nodes{2});
  EXPECT_EQ(domains.of_level(0).size(), 2U);
  EXPECT_EQ(domains.of_level(1).size(), 3U);
}

TEST_F(DomainsOfALedger, LeaveOutNodesWithoutTheLabelOrThatOfAWiderLevel) {
  const Domains domains(ledger, {"block", "rack"});
  EXPECT_EQ(domains.of(4, 0), domains.of(0, 0));
  EXPECT_EQ(domains.of(4, 1), kNoDomain);
  EXPECT_EQ(domains.of(5, 1), kNoDomain) << "whose rack that is nobody says";
  EXPECT_EQ(domains.of(6, 0), kNoDomain);
  EXPECT_EQ(domains.of(7, 0), kNoDomain) << "there is no such node";
  EXPECT_EQ(nodes_of(Domains(ledger, {"rack"}), 5, 0), (Nodes{0, 2, 3, 5}));
}

TEST_F(DomainsOfALedger, AreWithinThoseOfTheLevelBefore) {
  const Domains domains(ledger, {"block", "rack"});
  const DomainIndex rack = domains.of(3, 1);
  EXPECT_EQ(domains.domain(rack).within, domains.of(3, 0));
  EXPECT_EQ(domains.at_level(rack, 1, 0), domains.of(3, 0));
  EXPECT_EQ(domains.at_level(rack, 1, 1), rack);
  EXPECT_EQ(domains.domain(domains.of(3, 0)).parts, (std::vector{rack, domains.of(1, 1)}));
}

TEST_F(DomainsOfALedger, ChangeOnlyWithTheLabelsThatAreLevels) {
  const Domains domains(ledger, {"block", "rack"});
  EXPECT_TRUE(domains.stands(0, {{"block", "a"}, {"other", "x"}, {"rack", "1"}}));
  EXPECT_FALSE(domains.stands(0, {{"block", "a"}, {"rack", "2"}}));
  EXPECT_FALSE(domains.stands(0, {{"block", "a"}}));
  EXPECT_FALSE(domains.stands(6, {{"block", "a"}}));
  EXPECT_FALSE(domains.stands(7, {})) << "one that came";
}

/// What is counted is what fits, one after the other.
TEST(CountThatFit, IsWhatCanBeTaken) {
  std::mt19937 random(20261130);
  const auto below = [&random](int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  };
  for (int round = 0; round < 2'000; ++round) {
    Ledger ledger;
    const NodeIndex there = ledger.put(node("n", {}, below(9)));
    const auto demand_of = [&] {
      Demand demand{.milli_cpus = 500 * below(4), .memory = Memory::gib(below(9))};
      demand.gpus = below(4);
      if (demand.gpus == 1 && below(2) == 0) {
        demand.mode = GpuMode::Fraction;
        demand.share = Share::percent(10 * (1 + below(9)));
      }
      return ledger.intern(demand);
    };
    const DemandIndex other = demand_of();
    for (int i = below(3); i > 0 && ledger.fits(other, there); --i) {
      ledger.take(other, {there, ledger.first_devices(other, ledger.state(there))});
    }
    const DemandIndex demand = demand_of();
    constexpr std::size_t kMost = 12;
    const std::size_t counted = count_that_fit(ledger, demand, there, kMost);
    std::size_t taken = 0;
    for (; taken < kMost && ledger.fits(demand, there); ++taken) {
      ledger.take(demand, {there, ledger.first_devices(demand, ledger.state(there))});
    }
    EXPECT_EQ(counted, taken) << "round " << round;
  }
}

}  // namespace
}  // namespace gflow::placement
