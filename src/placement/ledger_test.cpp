// SPDX-License-Identifier: Apache-2.0
#include "placement/ledger.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <utility>

#include "placement/placer.h"

namespace gflow::placement {
namespace {

Node node_of(int devices, Memory memory = Memory::gib(80)) {
  Node node{.name = "n", .milli_cpus = 16'000, .memory = Memory::gib(64)};
  node.devices.resize(static_cast<std::size_t>(devices),
                      {.vendor = "nvidia", .model = "A100", .memory = memory});
  return node;
}

Demand whole(int gpus) { return {.gpus = gpus}; }
Demand part(int percent, Memory memory = {}) {
  return {
      .gpus = 1, .share = Share::percent(percent), .gpu_memory = memory, .mode = GpuMode::Fraction};
}
Demand turns(Memory memory = {}) {
  return {.gpus = 1, .gpu_memory = memory, .mode = GpuMode::TimeSlice};
}

struct FitCase {
  const char* what;
  std::vector<std::pair<Demand, std::vector<int>>> held;
  Demand asked;
  bool fits;
  SharingRules rules = {};
};

TEST(LedgerFits, OnTwoDevicesOf80Gib) {
  const SharingRules mixing{.mix_modes = true};
  const std::vector<FitCase> cases = {
      {"nothing asked", {}, {}, true},
      {"both", {}, whole(2), true},
      {"one more than there are", {}, whole(3), false},
      {"only to see a kind that is there", {{whole(2), {0, 1}}}, {.models = {"A100"}}, true},
      {"only to see one that is not there", {}, {.models = {"T4", "V100"}}, false},
      {"only to see a vendor that is there", {}, {.vendor = "nvidia"}, true},
      {"only to see one of another vendor", {}, {.vendor = "amd"}, false},
      {"the other one", {{whole(1), {0}}}, whole(1), true},
      {"none is left", {{whole(1), {0}}, {whole(1), {1}}}, whole(1), false},
      {"whole beside a part", {{part(10), {0}}, {part(10), {1}}}, whole(1), false},
      {"part beside whole", {{whole(2), {0, 1}}}, part(10), false},
      {"parts that fill a device", {{whole(1), {1}}, {part(60), {0}}}, part(40), true},
      {"parts that are too much", {{whole(1), {1}}, {part(60), {0}}}, part(41), false},
      {"a part sets aside its share of memory",
       {{whole(1), {1}}, {part(20, Memory::gib(70)), {0}}},
       part(30),
       false},
      {"memory that is declared",
       {{whole(1), {1}}, {part(20, Memory::gib(70)), {0}}},
       part(30, Memory::gib(10)),
       true},
      {"more memory than is left",
       {{whole(1), {1}}, {part(20, Memory::gib(70)), {0}}},
       part(30, Memory::gib(11)),
       false},
      {"more memory than a device has", {}, {.gpus = 1, .gpu_memory = Memory::gib(81)}, false},
      {"turns beside turns", {{whole(1), {1}}, {turns(), {0}}}, turns(), true},
      {"turns that keep too much memory",
       {{whole(1), {1}}, {turns(Memory::gib(50)), {0}}},
       turns(Memory::gib(40)),
       false},
      {"turns beside a part", {{whole(1), {1}}, {part(10), {0}}}, turns(), false},
      {"unless modes may mix", {{whole(1), {1}}, {part(10), {0}}}, turns(), true, mixing},
      {"too many time slices",
       {{whole(1), {1}}, {turns(), {0}}, {turns(), {0}}},
       turns(),
       false,
       {.max_time_sliced = 2}},
      {"parts are not time-sliced",
       {{whole(1), {1}}, {turns(), {0}}, {part(10), {0}}},
       turns(),
       true,
       {.max_time_sliced = 2, .mix_modes = true}},
      {"too many on a device",
       {{whole(1), {1}}, {part(1), {0}}, {part(1), {0}}},
       part(1),
       false,
       {.max_jobs = 2}},
      {"CPUs", {{{.milli_cpus = 10'000}, {}}}, {.milli_cpus = 6'001}, false},
      {"host memory", {{{.memory = Memory::gib(60)}, {}}}, {.memory = Memory::gib(5)}, false},
      {"another model", {}, {.gpus = 1, .models = {"V100"}}, false},
      {"one of several models", {}, {.gpus = 1, .models = {"A100", "V100"}}, true},
      {"another vendor", {}, {.gpus = 1, .vendor = "amd"}, false},
      {"a label that is not there", {}, {.selector = {{.key = "zone", .value = "b"}}}, false},
  };
  for (const FitCase& c : cases) {
    Ledger ledger(c.rules);
    const NodeIndex node = ledger.put(node_of(2));
    for (const auto& [demand, devices] : c.held) {
      ledger.take(ledger.intern(demand), {.node = node, .devices = devices});
    }
    const DemandIndex asked = ledger.intern(c.asked);
    EXPECT_EQ(ledger.fits(asked, node), c.fits) << c.what;
    EXPECT_EQ(ledger.shortfall(asked, node).fits(), c.fits) << c.what;
    EXPECT_EQ(ledger.check(), "") << c.what;
  }
}

TEST(LedgerFits, OnlyWhereItIsOpen) {
  Ledger ledger;
  const DemandIndex one = ledger.intern(whole(1));
  Node node = node_of(1);
  node.ready = false;
  EXPECT_FALSE(ledger.fits(one, ledger.put(node)));
  EXPECT_TRUE(ledger.shortfall(one, 0).closed);
  node.ready = true;
  node.drained = true;
  EXPECT_FALSE(ledger.fits(one, ledger.put(node)));
  EXPECT_TRUE(ledger.could_fit(one, 0));
  node.drained = false;
  EXPECT_TRUE(ledger.fits(one, ledger.put(node)));
  node.devices[0].usable = false;
  EXPECT_FALSE(ledger.fits(one, ledger.put(node)));
  EXPECT_EQ(ledger.size(), 1);
}

TEST(LedgerShortfall, SaysByHowMuch) {
  Ledger ledger;
  const NodeIndex node = ledger.put(node_of(2));
  ledger.take(ledger.intern(part(60, Memory::gib(70))), {.node = node, .devices = {0}});
  ledger.take(ledger.intern(part(90, Memory::gib(10))), {.node = node, .devices = {1}});
  const Shortfall memory = ledger.shortfall(ledger.intern(part(40, Memory::gib(32))), node);
  EXPECT_EQ(memory.gpu_memory, Memory::gib(22));
  EXPECT_EQ(memory.devices, 1);
  EXPECT_EQ(memory.devices_suitable, 2);
  EXPECT_EQ(memory.devices_free, 0);
  const Shortfall share = ledger.shortfall(ledger.intern(part(50, Memory::gib(1))), node);
  EXPECT_EQ(share.share, Share::percent(10));
  const Shortfall both = ledger.shortfall(ledger.intern(part(50, Memory{})), node);
  EXPECT_EQ(both.share, Share::percent(40));  // 0.1 and with it 8G of the 70G of the second
  const Shortfall cpus = ledger.shortfall(ledger.intern({.milli_cpus = 20'000}), node);
  EXPECT_EQ(cpus.milli_cpus, 4'000);
}

TEST(LedgerPut, KeepsWhatIsHeld) {
  Ledger ledger;
  const NodeIndex node = ledger.put(node_of(2));
  const DemandIndex both = ledger.intern(whole(2));
  const Placement placement{.node = node, .devices = {0, 1}};
  ledger.take(both, placement);
  ledger.put(node_of(2, Memory::gib(40)));
  EXPECT_FALSE(ledger.fits(ledger.intern(whole(1)), node));
  ledger.put(node_of(1));  // the second fell off the bus while it was in use
  EXPECT_EQ(ledger.state(node).devices.size(), 2U);
  ledger.give_back(both, placement);
  EXPECT_TRUE(ledger.fits(ledger.intern(whole(1)), node));
  EXPECT_FALSE(ledger.fits(both, node));
  EXPECT_EQ(ledger.check(), "");
}

TEST(LedgerPut, TakesMemoryThatOthersUse) {
  Ledger ledger;
  Node node = node_of(1);
  node.devices[0].memory_lost = Memory::gib(30);
  ledger.put(node);
  EXPECT_TRUE(ledger.fits(ledger.intern({.gpus = 1, .gpu_memory = Memory::gib(50)}), 0));
  EXPECT_FALSE(ledger.fits(ledger.intern({.gpus = 1, .gpu_memory = Memory::gib(51)}), 0));
}

TEST(LedgerSuspended, KeepsOnlyMemory) {
  Ledger ledger;
  const NodeIndex node = ledger.put(node_of(1));
  const DemandIndex held =
      ledger.intern({.gpus = 1, .gpu_memory = Memory::gib(50), .milli_cpus = 16'000});
  const Placement placement{.node = node, .devices = {0}};
  ledger.take(held, placement, Presence::Suspended);
  EXPECT_TRUE(ledger.fits(
      ledger.intern({.gpus = 1, .gpu_memory = Memory::gib(30), .milli_cpus = 16'000}), node));
  EXPECT_FALSE(ledger.fits(ledger.intern({.gpus = 1, .gpu_memory = Memory::gib(31)}), node));
  ledger.give_back(held, placement, Presence::Suspended);
  EXPECT_EQ(ledger.state(node), ledger.emptied().state(node));
}

/// A node with host memory, a job of 50 GiB of its only GPU in one mode, and what others could
/// have.
class LedgerParked : public ::testing::Test {
 protected:
  void SetUp() override {
    Node one = node_of(1);
    one.memory = Memory::gib(100);
    node = ledger.put(one);
    held = ledger.intern({.gpus = 1,
                          .gpu_memory = Memory::gib(50),
                          .milli_cpus = 16'000,
                          .memory = Memory::gib(10)});
    there = {.node = node, .devices = {0}};
  }
  [[nodiscard]] bool fits(const Demand& demand) { return ledger.fits(ledger.intern(demand), node); }
  [[nodiscard]] bool has_host_memory(int gib) { return fits({.memory = Memory::gib(gib)}); }
  /// Without it, as it stands otherwise.
  [[nodiscard]] bool can_go_on(Presence presence) {
    NodeState state = ledger.state(node);
    ledger.give_back_on(state, held, {0}, presence);
    return ledger.can_go_on(held, state, {0}, presence);
  }

  Ledger ledger;
  NodeIndex node = 0;
  DemandIndex held = 0;
  Placement there;
};

TEST_F(LedgerParked, KeepsHostMemoryForWhatItHadOfItsGpus) {
  const struct {
    Presence presence;
    bool computes;
    bool on_gpu;
    int host;  ///< GiB
  } kRows[] = {
      {Presence::Working, true, true, 10},
      {Presence::Suspended, false, true, 10},
      {Presence::Parking, false, true, 61},
      {Presence::Parked, false, false, 61},
      {Presence::Unparking, true, true, 61},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(static_cast<int>(row.presence));
    ledger.take(held, there, row.presence);
    EXPECT_EQ(fits(whole(1)), !row.computes && !row.on_gpu) << "whatever it uses of the memory";
    EXPECT_EQ(fits({.gpus = 1, .gpu_memory = Memory::gib(30)}), !row.computes);
    EXPECT_EQ(fits({.gpus = 1, .gpu_memory = Memory::gib(31)}), !row.computes && !row.on_gpu);
    EXPECT_EQ(fits({.milli_cpus = 16'000}), !row.computes);
    EXPECT_TRUE(has_host_memory(100 - row.host));
    EXPECT_FALSE(has_host_memory(101 - row.host));
    EXPECT_EQ(ledger.check(), "");
    Node again = ledger.node(node);
    again.labels = {{"a", "b"}};
    ledger.put(again);
    EXPECT_EQ(ledger.check(), "");
    ledger.give_back(held, there, row.presence);
    EXPECT_EQ(ledger.state(node), ledger.emptied().state(node));
  }
}

TEST_F(LedgerParked, GoesOnWhereItsGpusHaveItsMemoryAgain) {
  const DemandIndex urgent = ledger.intern({.gpus = 1, .gpu_memory = Memory::gib(31)});
  ledger.take(held, there, Presence::Parked);
  EXPECT_TRUE(can_go_on(Presence::Parked));
  ledger.take(urgent, there, Presence::Suspended);  // its compute is free, its memory is not
  EXPECT_FALSE(can_go_on(Presence::Parked));
  ledger.give_back(urgent, there, Presence::Suspended);
  EXPECT_TRUE(can_go_on(Presence::Parked));
  ledger.take(urgent, there);
  EXPECT_FALSE(can_go_on(Presence::Parked));
}

/// Which may have all of its GPU.
TEST_F(LedgerParked, OfOneThatDeclaredNothingItIsWhatTheGpuHas) {
  const DemandIndex unknown = ledger.intern(whole(1));
  EXPECT_EQ(ledger.copy_of(unknown, ledger.state(node), {0}), Memory::gib(80));
  ledger.take(unknown, there, Presence::Parked);
  EXPECT_TRUE(fits(whole(1)));
  EXPECT_TRUE(has_host_memory(20));
  EXPECT_FALSE(has_host_memory(21));
  ledger.take(held, there, Presence::Suspended);
  NodeState state = ledger.state(node);
  ledger.give_back_on(state, unknown, {0}, Presence::Parked);
  EXPECT_FALSE(ledger.can_go_on(unknown, state, {0}, Presence::Parked));
}

TEST(LedgerChanges, AreToldSinceAVersion) {
  Ledger ledger;
  const NodeIndex first = ledger.put(node_of(1));
  const std::uint64_t version = ledger.version();
  Node other = node_of(1);
  other.name = "m";
  const NodeIndex second = ledger.put(other);
  const DemandIndex one = ledger.intern(whole(1));
  ledger.take(one, {.node = first, .devices = {0}});
  const auto changed = ledger.changed_since(version);
  ASSERT_TRUE(changed.has_value());
  EXPECT_EQ(std::vector<NodeIndex>(changed->begin(), changed->end()),
            (std::vector<NodeIndex>{second, first}));
  for (int i = 0; i < 100'000; ++i) {
    ledger.give_back(one, {.node = first, .devices = {0}});
    ledger.take(one, {.node = first, .devices = {0}});
  }
  EXPECT_FALSE(ledger.changed_since(version).has_value());
  EXPECT_TRUE(ledger.changed_since(ledger.version() - 30'000).has_value());
}

/// What is free, counted from what is held and nothing else.
struct SlowReference {
  std::vector<std::pair<Demand, Placement>> held;

  [[nodiscard]] Share used(std::size_t device) const {
    Share sum;
    for (const auto& [demand, placement] : held) {
      for (const int i : placement.devices) {
        if (i == static_cast<int>(device)) sum += demand.share;
      }
    }
    return sum;
  }
};

TEST(LedgerProperty, NothingIsLostOrHeldTwice) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&random](int n) {
      return static_cast<int>(random() % static_cast<unsigned>(n));
    };
    Ledger ledger;
    const NodeIndex node = ledger.put(node_of(4));
    const NodeState empty = ledger.state(node);
    SlowReference reference;
    for (int step = 0; step < 300; ++step) {
      const Demand demand = below(2) == 0 ? whole(1 + below(3)) : part(5 * (1 + below(19)));
      const DemandIndex index = ledger.intern(demand);
      if (below(3) > 0 && ledger.fits(index, node)) {
        Placement placement{.node = node, .devices = {}};
        for (int i = 0; i < 4 && std::ssize(placement.devices) < demand.gpus; ++i) {
          const auto& device = ledger.state(node).devices[static_cast<std::size_t>(i)];
          if (ledger.device_fits(index, device)) placement.devices.push_back(i);
        }
        ledger.take(index, placement);
        reference.held.emplace_back(demand, placement);
      } else if (!reference.held.empty()) {
        const auto gone = reference.held.begin() + below(static_cast<int>(reference.held.size()));
        ledger.give_back(ledger.intern(gone->first), gone->second);
        reference.held.erase(gone);
      }
      ASSERT_EQ(ledger.check(), "") << "seed " << seed << " step " << step;
      for (std::size_t i = 0; i < 4; ++i) {
        const Share used = reference.used(i);
        ASSERT_LE(used, Share::whole()) << "seed " << seed << " step " << step;
        ASSERT_EQ(ledger.state(node).devices[i].free, Share::whole() - used);
      }
    }
    for (const auto& [demand, placement] : reference.held) {
      ledger.give_back(ledger.intern(demand), placement);
    }
    EXPECT_EQ(ledger.state(node), empty) << "seed " << seed;
  }
}

// What is chosen among equals must not depend on when nodes came, or a restart would decide
// otherwise.
TEST(Ledger, NodesGoAndAreSortedByName) {
  Ledger ledger;
  for (const char* name : {"n10", "gone", "n2", "n1"}) (void)ledger.put({.name = name});
  const Demand plain;
  const DemandIndex demand = ledger.intern(plain);
  ledger.take(demand, {*ledger.find("n10"), {}});
  ledger.remove(*ledger.find("gone"));
  EXPECT_EQ(ledger.count(), 3U);
  EXPECT_FALSE(ledger.find("gone"));
  const NodeIndex held = *ledger.find("n10");
  const auto moved = ledger.sort();
  ASSERT_TRUE(moved);
  EXPECT_EQ(ledger.size(), 3);
  const std::vector<std::string> want = {"n1", "n2", "n10"};
  for (NodeIndex index = 0; index < ledger.size(); ++index) {
    const std::string& name = want[static_cast<std::size_t>(index)];
    EXPECT_EQ(ledger.node(index).name, name);
    EXPECT_EQ(ledger.find(name), index);
    EXPECT_EQ(ledger.holds(index).size(), name == "n10" ? 1U : 0U);
  }
  EXPECT_EQ((*moved)[static_cast<std::size_t>(held)], ledger.find("n10"));
  EXPECT_FALSE(ledger.sort());
  EXPECT_EQ(ledger.check(), "");
}

/// A device that is kept is for one demand, and for those that differ from it only in what no score
/// looks at; a placer, which keeps scores for both, says the same.
TEST(Ledger, WhatIsKeptIsForOneDemand) {
  Ledger ledger;
  const DemandIndex other = ledger.intern({.gpus = 1, .models = {"A100"}});
  const DemandIndex own = ledger.intern(whole(1));
  Demand with_memory = whole(1);
  with_memory.memory = Memory::gib(8);
  const DemandIndex same_part = ledger.intern(with_memory);
  Node node = node_of(2);
  node.devices[0].kept_for = own;
  const NodeIndex at = ledger.put(node);
  Placer placer(policies().front().make({}));
  for (const auto& [demand, devices] : {std::pair(other, std::vector<int>{1}),
                                        std::pair(own, std::vector<int>{0, 1}),
                                        std::pair(same_part, std::vector<int>{0, 1})}) {
    std::vector<int> fitting;
    for (int i = 0; i < 2; ++i) {
      const DeviceState& device = ledger.state(at).devices[static_cast<std::size_t>(i)];
      if (ledger.device_fits(demand, device)) fitting.push_back(i);
    }
    EXPECT_EQ(fitting, devices);
  }
  ledger.take(own, {at, {1}});
  EXPECT_FALSE(ledger.fits(other, at));
  EXPECT_FALSE(placer.choose(ledger, other));
  EXPECT_TRUE(placer.choose(ledger, own));
  EXPECT_EQ(ledger.shortfall(other, at).devices_free, 0);
  node.devices[0].kept_for = kForAnyDemand;
  (void)ledger.put(node);
  EXPECT_TRUE(placer.choose(ledger, other));
  EXPECT_EQ(ledger.check(), "");
}

}  // namespace
}  // namespace gflow::placement
