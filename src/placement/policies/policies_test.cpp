// SPDX-License-Identifier: Apache-2.0
#include "placement/policies/policies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <set>

#include "placement/fragmentation.h"
#include "placement/placer.h"
#include "placement/policies/utilisation.h"

namespace gflow::placement {
namespace {

Node node_of(std::string name, int devices) {
  Node node{.name = std::move(name), .milli_cpus = 32'000, .memory = Memory::gib(256)};
  node.devices.resize(static_cast<std::size_t>(devices), {.vendor = "nvidia", .model = "A100"});
  return node;
}

Demand percent_of_one(int percent) {
  return {.gpus = 1, .share = Share::percent(percent), .mode = GpuMode::Fraction};
}

/// Three nodes of four devices: n0 empty, n1 with one device and half of the CPUs in use, n2 with
/// one and a half devices and half of the CPUs in use.
Ledger three_nodes() {
  Ledger ledger;
  for (const char* name : {"n0", "n1", "n2"}) ledger.put(node_of(name, 4));
  const DemandIndex one = ledger.intern({.gpus = 1, .milli_cpus = 16'000});
  ledger.take(one, {.node = 1, .devices = {0}});
  ledger.take(one, {.node = 2, .devices = {1}});
  ledger.take(ledger.intern(percent_of_one(50)), {.node = 2, .devices = {0}});
  return ledger;
}

struct PlaceCase {
  std::string_view policy;
  Demand demand;
  Placement expected;
};

TEST(Policies, PlaceAsTheyPromise) {
  const std::vector<PlaceCase> cases = {
      {"spread", {.gpus = 1}, {0, {0}}},
      {"spread", percent_of_one(50), {0, {0}}},
      {"pack", {.gpus = 1}, {2, {2}}},
      {"pack", percent_of_one(50), {2, {0}}},
      {"pack", {.gpus = 4}, {0, {0, 1, 2, 3}}},
      {"balanced", {.gpus = 1}, {1, {1}}},
      {"best-fit", {.gpus = 1}, {2, {2}}},
      {"gpu-packing", percent_of_one(50), {2, {0}}},
      {"gpu-packing", {.gpus = 1}, {1, {1}}},
      {"gpu-clustering", percent_of_one(20), {2, {0}}},
      {"gpu-clustering", {.gpus = 1}, {1, {1}}},
      {"gpu-clustering", {.gpus = 2}, {0, {0, 1}}},
  };
  for (const PlaceCase& c : cases) {
    Ledger ledger = three_nodes();
    const DemandIndex demand = ledger.intern(c.demand);
    Placer placer(find_policy(c.policy)->make({}), Profile{});
    const auto choice = placer.choose(ledger, demand);
    ASSERT_TRUE(choice.has_value()) << c.policy;
    EXPECT_EQ(choice->placements.front(), c.expected) << c.policy << " gpus " << c.demand.gpus;
  }
}

TEST(Policies, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const PolicyEntry& policy : policies()) {
    EXPECT_TRUE(names.insert(policy.name).second) << policy.name;
    EXPECT_EQ(find_policy(policy.name), &policy);
    EXPECT_FALSE(policy.summary.empty());
  }
  EXPECT_EQ(find_policy("nothing"), nullptr);
}

TEST(Utilisation, TermsAddUpToTheScore) {
  Ledger ledger = three_nodes();
  const DemandIndex demand = ledger.intern({.gpus = 1, .milli_cpus = 4'000});
  for (const char* name : {"spread", "pack", "balanced"}) {
    Placer placer(find_policy(name)->make({.gpu_weight = 50, .memory_weight = 20}), Profile{});
    for (const Ranked& ranked : placer.rank(ledger, demand, 3)) {
      double sum = 0;
      for (const Term& term : ranked.terms) sum += term.weight * term.value;
      EXPECT_NEAR(sum * 1000, ranked.score, 1e-6) << name;
    }
  }
}

TEST(Utilisation, OfTheDocument) {
  // One of four devices, 8 of 32 CPUs: 25 % each; memory of the devices is not known.
  Ledger ledger;
  ledger.put(node_of("n", 4));
  const DemandIndex demand = ledger.intern({.gpus = 1, .milli_cpus = 8'000});
  const std::vector<std::pair<std::string_view, Score>> expected = {
      {"pack", 40 * 250 + 30 * 250 + 20 * 250 + 10 * 1000},
      {"spread", 40 * 750 + 30 * 750 + 20 * 750 + 10 * 1000},
      {"balanced", 100'000},
  };
  for (const auto& [name, score] : expected) {
    Placer placer(find_policy(name)->make({}), Profile{});
    EXPECT_EQ(placer.choose(ledger, demand)->score, score) << name;
  }
}

/// All ways to take so many of the devices that fit.
std::vector<std::vector<int>> all_sets(const Question& question) {
  std::vector<std::vector<int>> sets;
  const unsigned devices = static_cast<unsigned>(question.fits.size());
  for (unsigned mask = 0; mask < 1U << devices; ++mask) {
    std::vector<int> set;
    for (unsigned i = 0; i < devices; ++i) {
      if ((mask >> i & 1U) != 0 && question.fits[i] != 0) set.push_back(static_cast<int>(i));
    }
    const bool all_fit = std::popcount(mask) == std::ssize(set);
    if (all_fit && std::ssize(set) == question.demand.gpus) sets.push_back(std::move(set));
  }
  return sets;
}

struct RandomMachine {
  explicit RandomMachine(unsigned seed) : random(seed) {
    ledger.put(node_of("n", 1 + below(6)));
    for (int i = below(10); i > 0; --i) {
      const DemandIndex held = ledger.intern(percent_of_one(10 * (1 + below(9))));
      const int device = below(static_cast<int>(ledger.node(0).devices.size()));
      const auto& state = ledger.state(0).devices[static_cast<std::size_t>(device)];
      if (ledger.device_fits(held, state)) ledger.take(held, {.node = 0, .devices = {device}});
    }
    Demand demand =
        below(2) == 0 ? percent_of_one(10 * (1 + below(9))) : Demand{.gpus = 1 + below(3)};
    demand.milli_cpus = 1'000 * below(8);
    asked = ledger.intern(demand);
    view = view_of(ledger, 0);
    for (const DeviceState& device : ledger.state(0).devices) {
      fits.push_back(ledger.device_fits(asked, device) ? 1 : 0);
    }
  }
  int below(int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }
  [[nodiscard]] Question question() const {
    return {.ledger = ledger,
            .index = asked,
            .demand = ledger.demand(asked),
            .node = view,
            .fits = fits};
  }

  std::mt19937 random;
  Ledger ledger;
  DemandIndex asked = 0;
  NodeView view;
  std::vector<std::uint8_t> fits;
};

TEST(Pack, TakesDevicesThatStrandLeast) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    const RandomMachine machine(seed);
    if (!machine.ledger.fits(machine.asked, 0)) continue;
    const Question question = machine.question();
    const std::unique_ptr<Policy> pack = make_pack({});
    const int taken = utilisation_with(question, pack->devices(question)).fragmentation;
    for (const std::vector<int>& set : all_sets(question)) {
      EXPECT_LE(taken, utilisation_with(question, set).fragmentation) << "seed " << seed;
    }
  }
}

Profile usual_profile() {
  std::vector<DemandClass> kinds;
  const auto add = [&kinds](Demand demand, int cpus, std::int64_t count) {
    demand.milli_cpus = cpus * 1'000;
    kinds.push_back({.demand = std::move(demand), .count = count});
  };
  add({.gpus = 1}, 8, 391);
  add({}, 4, 109);
  add(percent_of_one(80), 6, 108);
  add(percent_of_one(50), 4, 75);
  add(percent_of_one(30), 2, 33);
  add({.gpus = 2}, 16, 14);
  add({.gpus = 4, .models = {"A100"}}, 32, 9);
  add({.gpus = 1, .models = {"T4"}}, 4, 20);
  return profile_of(kinds);
}

/// The published score, by the published arithmetic, trying every set of devices.
Score fgd_by_definition(const Fragmentation& fragmentation, const Question& question) {
  const auto remains = [&](std::span<const std::int32_t> free, std::int64_t cpus) {
    return fragmentation.published({.model = question.node.model,
                                    .milli_cpus = cpus,
                                    .free = free,
                                    .models = question.ledger.state(0).devices});
  };
  const double before = remains(question.node.free, question.node.milli_cpus_free);
  Score best = kNoScore;
  for (const std::vector<int>& set : all_sets(question)) {
    const std::vector<std::int32_t> free = free_after(question, set);
    const double after = remains(free, question.node.milli_cpus_free - question.demand.milli_cpus);
    const double sigmoid = 1.0 / (1.0 + std::exp(-((before - after) / 1000)));
    best = std::max(best, static_cast<Score>(sigmoid * 100));
  }
  return best;
}

TEST(Fgd, TablesAgreeWithTheDefinition) {
  for (unsigned seed = 1; seed <= 1'000; ++seed) {
    RandomMachine machine(seed);
    if (!machine.ledger.fits(machine.asked, 0)) continue;
    const Profile profile = usual_profile();
    const Traffic traffic;
    const std::unique_ptr<Policy> fgd = make_fgd({});
    fgd->prepare({.ledger = machine.ledger, .profile = profile, .traffic = traffic});
    machine.view.worth = fgd->worth(machine.ledger, machine.view);
    const Fragmentation fragmentation(machine.ledger, profile);
    EXPECT_EQ(fgd->score(machine.question()), fgd_by_definition(fragmentation, machine.question()))
        << "seed " << seed;
  }
}

TEST(Fragmentation, ExactAndPublishedAreTheSame) {
  const Profile profile = usual_profile();
  for (unsigned seed = 1; seed <= 300; ++seed) {
    const RandomMachine machine(seed);
    const Fragmentation fragmentation(machine.ledger, profile);
    const Remains remains{.model = machine.view.model,
                          .milli_cpus = machine.view.milli_cpus_free,
                          .free = machine.view.free,
                          .models = machine.ledger.state(0).devices};
    const std::int64_t exact =
        machine.view.free_parts * fragmentation.jobs() - fragmentation.usable(remains);
    const double milli =
        static_cast<double>(exact) / 10 / static_cast<double>(fragmentation.jobs());
    EXPECT_NEAR(milli, fragmentation.published(remains), 1e-8) << "seed " << seed;
  }
}

TEST(Profile, CutsAt95Percent) {
  std::vector<DemandClass> kinds;
  for (const int count : {90, 5, 3, 2}) {
    kinds.push_back({.demand = {.gpus = count, .memory = Memory::gib(count)}, .count = count});
  }
  kinds.push_back({.demand = {.gpus = 90}, .count = 10});  // differs only in host memory
  const Profile profile = profile_of(kinds);
  ASSERT_EQ(profile.classes.size(), 4U);
  EXPECT_EQ(profile.typical, 2U);
  EXPECT_EQ(profile.typical_count(), 105);
  EXPECT_EQ(profile.classes.front().count, 100);
}

TEST(DemandCounter, ForgetsSlowly) {
  DemandCounter counter;
  const Demand one{.gpus = 1};
  const Demand two{.gpus = 2};
  int asked = 0;
  for (std::int64_t i = 0; i < DemandCounter::kMemory; ++i) {
    counter.add(one);
    if (counter.until_due() > 0) continue;
    (void)counter.profile();
    ++asked;
  }
  EXPECT_LT(asked, 25);
  for (std::int64_t i = 0; i < 8 * DemandCounter::kMemory; ++i) counter.add(two);
  const Profile profile = counter.profile();
  EXPECT_EQ(profile.classes.front().demand.gpus, 2);
  EXPECT_GT(profile.classes.front().count, 20 * profile.classes.back().count);
}

TEST(DemandCounter, ManyAtOnceAreAsManyOneByOne) {
  DemandCounter together;
  DemandCounter apart;
  for (const std::int64_t count : {1L, 7L, 9'000L, 10'991L, 3L, 45'000L}) {
    const Demand demand{.gpus = static_cast<int>(count % 3)};
    together.add(demand, count);
    for (std::int64_t i = 0; i < count; ++i) apart.add(demand);
    EXPECT_EQ(together.until_due(), apart.until_due());
    EXPECT_EQ(together.profile().classes, apart.profile().classes);
  }
}

}  // namespace
}  // namespace gflow::placement
