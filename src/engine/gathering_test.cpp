// SPDX-License-Identifier: Apache-2.0
// How near each other the jobs of a gang go.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/machine_for_tests.h"
#include "core/principal.h"
#include "engine/step.h"

namespace gflow::engine {
namespace {

using Names = std::set<std::string>;
constexpr GangNumber kNearGang = 7;

/// "n0 a/1 4": a node in block a, rack 1, with four GPUs; "-" is a label that it lacks.
struct RackNode {
  std::string name;
  std::string block;
  std::string rack;
  int gpus = 4;
};

class Cluster {
 public:
  explicit Cluster(const std::vector<RackNode>& places) : state_(policy(), "boot") {
    state_.restored(JobId(1));
    for (const RackNode& place : places) put(place);
  }

  void put(const RackNode& place) {
    Machine machine = machine_with_gpus(place.name, place.gpus, "NVIDIA T4", Memory::gib(16));
    if (place.block != "-") machine.labels.push_back({"block", place.block});
    machine.labels.push_back({"node", place.name});
    if (place.rack != "-") machine.labels.push_back({"rack", place.rack});
    tell(event::NodesChanged{{machine}});
  }
  JobId submit(int gpus, GangNumber gang = kNoGang, const std::string& node = "") {
    JobSpec spec;
    spec.user = {1000, "alice"};
    spec.request.gpus = gpus;
    if (!node.empty()) spec.request.selector = {{"node", node}};
    const JobId id = state_.next_id();
    if (gang != kNoGang) state_.join_gang(id, gang);
    tell(event::Submit{{spec}, system_principal()});
    return id;
  }
  void put_gang(std::size_t least, std::size_t required, std::size_t preferred) {
    state_.put_gang(kNearGang, least, {{"block", "rack"}, required, preferred});
    tell(event::Tick{});
  }
  /// So many of so many GPUs, which start together.
  std::vector<JobId> submit_gang(std::size_t jobs,
                                 int gpus,
                                 std::size_t required,
                                 std::size_t preferred = 0) {
    put_gang(jobs, required, preferred);
    std::vector<JobId> ids;
    for (std::size_t i = 0; i < jobs; ++i) ids.push_back(submit(gpus, kNearGang));
    return ids;
  }
  void end(JobId id) {
    Outcome outcome;
    outcome.exit_code = 0;
    tell(event::AttemptEnded{id, attempt_of(*state_.find(id))->number, outcome});
  }
  /// Its launch fails, for no fault of the node: it pauses.
  void fail(JobId id) {
    Outcome outcome;
    outcome.reason = EndReason::NotStarted;
    outcome.failure.kind = FailureKind::Passing;
    nodes_.erase(id);
    tell(event::AttemptEnded{id, attempt_of(*state_.find(id))->number, outcome});
  }
  /// All of a gang that start are not told of it, and wait again.
  void take_back(const std::vector<JobId>& gang) {
    state_.hold_gang(kNearGang, true);
    for (const JobId id : gang) {
      nodes_.erase(id);
      tell(event::AttemptRevoked{id, attempt_of(*state_.find(id))->number});
    }
    state_.hold_gang(kNearGang, false);
  }
  void tell(const Event& event) {
    now_.mono += std::chrono::seconds(1);
    now_.wall += std::chrono::seconds(1);
    for (const Effect& effect : step(state_, event, now_)) {
      const auto* launch = std::get_if<effect::Launch>(&effect);
      if (launch != nullptr) nodes_[launch->order->job] = launch->order->node;
    }
    ASSERT_EQ(state_.check(), "");
  }
  void pass(std::chrono::minutes time) { now_.mono += time, now_.wall += time; }
  /// "" of one that waits.
  [[nodiscard]] std::string node_of(JobId id) const {
    const auto at = nodes_.find(id);
    return at == nodes_.end() ? "" : at->second;
  }
  [[nodiscard]] Names nodes_of(const std::vector<JobId>& ids) const {
    Names names;
    for (const JobId id : ids) names.insert(node_of(id));
    return names;
  }
  [[nodiscard]] GangView gang(JobId id) const { return *state_.gang_of(id); }
  [[nodiscard]] State& state() { return state_; }

 private:
  static Policy policy() {
    Policy policy;
    policy.order.order = Order::Submission;
    return policy;
  }

  State state_;
  Now now_{WallTime(std::chrono::hours(24 * 365 * 50)), MonoTime(std::chrono::seconds(1))};
  std::map<JobId, std::string> nodes_;
};

const std::vector<RackNode> kTwoBlocks = {{"n0", "a", "1"},
                                          {"n1", "a", "1"},
                                          {"n2", "a", "2"},
                                          {"n3", "b", "1"},
                                          {"n4", "b", "1"},
                                          {"n5", "b", "1"}};

TEST(Gathering, InTheSmallestRackThatHoldsAll) {
  Cluster cluster(kTwoBlocks);
  EXPECT_EQ(cluster.nodes_of(cluster.submit_gang(2, 4, 2)), (Names{"n0", "n1"}));
}

TEST(Gathering, InOneRackOrNotAtAll) {
  Cluster cluster(kTwoBlocks);
  const auto gang = cluster.submit_gang(4, 4, 2);
  EXPECT_EQ(cluster.nodes_of(gang), Names{""});
  EXPECT_EQ(cluster.gang(gang.front()).level, "rack");
  EXPECT_EQ(cluster.gang(gang.front()).room, 3U);
  cluster.put({"n6", "b", "1"});
  EXPECT_EQ(cluster.nodes_of(gang), (Names{"n3", "n4", "n5", "n6"}));
}

TEST(Gathering, CountsRackOneOfTwoBlocksAsTwo) {
  Cluster cluster({{"n0", "a", "1"}, {"n1", "b", "1"}});
  EXPECT_EQ(cluster.nodes_of(cluster.submit_gang(2, 4, 2)), Names{""});
}

TEST(Gathering, OnNoNodeWithoutALabel) {
  Cluster cluster({{"n0", "a", "1"}, {"n1", "a", "-"}, {"n2", "-", "1"}, {"n3", "-", "-"}});
  const auto gang = cluster.submit_gang(2, 4, 2);
  EXPECT_EQ(cluster.nodes_of(gang), Names{""});
  cluster.put({"n1", "a", "1"});
  EXPECT_EQ(cluster.nodes_of(gang), (Names{"n0", "n1"})) << "it has its label now";
}

TEST(Gathering, AsNearAsThereIsRoomWhereThatIsPreferred) {
  Cluster one_rack(kTwoBlocks);
  EXPECT_EQ(one_rack.nodes_of(one_rack.submit_gang(3, 4, 0, 2)), (Names{"n3", "n4", "n5"}));
  Cluster one_block({{"n0", "a", "1"}, {"n1", "b", "1"}, {"n2", "a", "2"}, {"n3", "b", "2"}});
  EXPECT_EQ(one_block.nodes_of(one_block.submit_gang(2, 4, 0, 2)), (Names{"n0", "n2"}));
  Cluster anywhere({{"n0", "a", "1"}, {"n1", "b", "1"}});
  EXPECT_EQ(anywhere.nodes_of(anywhere.submit_gang(2, 4, 0, 2)), (Names{"n0", "n1"}));
}

TEST(Gathering, InOneBlockAndFewRacksOfIt) {
  Cluster cluster({{"n0", "a", "1"},
                   {"n1", "a", "2"},
                   {"n2", "a", "2"},
                   {"n3", "a", "3"},
                   {"n4", "a", "3"},
                   {"n5", "a", "3"}});
  EXPECT_EQ(cluster.nodes_of(cluster.submit_gang(5, 4, 1)), (Names{"n1", "n2", "n3", "n4", "n5"}));
}

TEST(Gathering, WithARackThatIsPreferredInABlockThatIsRequired) {
  Cluster cluster(
      {{"n0", "a", "1"}, {"n1", "a", "2"}, {"n2", "b", "1"}, {"n3", "b", "1"}, {"n4", "b", "2"}});
  EXPECT_EQ(cluster.nodes_of(cluster.submit_gang(2, 4, 1, 2)), (Names{"n2", "n3"}))
      << "block a has least room, and no rack for both";
}

TEST(Gathering, NobodySaidLeavesAsManyNodesIdle) {
  Cluster cluster(kTwoBlocks);
  EXPECT_EQ(cluster.nodes_of(cluster.submit_gang(3, 4, 0)), (Names{"n3", "n4", "n5"}));
  Cluster used({{"n0", "a", "1"}, {"n1", "b", "1"}, {"n2", "c", "1"}, {"n3", "c", "1"}});
  (void)used.submit(2, kNoGang, "n0");
  (void)used.submit(2, kNoGang, "n1");
  EXPECT_EQ(used.nodes_of(used.submit_gang(2, 2, 0)), (Names{"n0", "n1"}))
      << "a rack for both would take a node that nobody uses";
}

TEST(Gathering, OneMadeAnewGoesWhereItsGangRuns) {
  for (const std::size_t required : {std::size_t{2}, std::size_t{0}}) {
    Cluster cluster(kTwoBlocks);
    const auto gang = cluster.submit_gang(3, 4, required, 2);
    ASSERT_EQ(cluster.nodes_of(gang), (Names{"n3", "n4", "n5"}));
    cluster.end(gang[1]);
    EXPECT_EQ(cluster.node_of(cluster.submit(4, kNearGang)), "n4");
  }
}

TEST(Gathering, OneMadeAnewWaitsForItsRackWhereThatIsRequired) {
  for (const bool is_required : {true, false}) {
    Cluster cluster(kTwoBlocks);
    const auto gang = is_required ? cluster.submit_gang(3, 4, 2) : cluster.submit_gang(3, 4, 0, 2);
    cluster.end(gang[1]);
    const JobId other = cluster.submit(4, kNoGang, "n4");
    const JobId anew = cluster.submit(4, kNearGang);
    EXPECT_EQ(cluster.node_of(anew), is_required ? "" : "n2");
    if (!is_required) continue;
    EXPECT_NE(cluster.node_of(cluster.submit(4)), "") << "it holds up nobody elsewhere";
    cluster.end(other);
    EXPECT_EQ(cluster.node_of(anew), "n4");
  }
}

TEST(Gathering, MoreThanHaveToStartGoNearThem) {
  for (const std::size_t required : {std::size_t{2}, std::size_t{0}}) {
    Cluster cluster({{"n0", "a", "1"}, {"n1", "b", "1"}, {"n2", "b", "1"}, {"n3", "b", "1"}});
    cluster.put_gang(2, required, 2);
    const JobId a = cluster.submit(4, kNearGang, "n1");
    const JobId b = cluster.submit(4, kNearGang, "n2");
    ASSERT_EQ(cluster.nodes_of({a, b}), (Names{"n1", "n2"}));
    EXPECT_EQ(cluster.node_of(cluster.submit(4, kNearGang)), "n3");
    const JobId last = cluster.submit(4, kNearGang);
    EXPECT_EQ(cluster.node_of(last), required > 0 ? "" : "n0");
  }
}

/// A place that is kept is one in which it can start.
TEST(Gathering, KeepsItsPlaceInOneRack) {
  Cluster cluster({{"n0", "a", "1"}, {"n1", "b", "1"}, {"n2", "b", "1"}});
  const JobId first = cluster.submit(4, kNoGang, "n1");
  const auto gang = cluster.submit_gang(2, 4, 2);
  cluster.pass(std::chrono::minutes(60));
  EXPECT_EQ(cluster.node_of(cluster.submit(4)), "n0") << "not in the rack that it waits for";
  EXPECT_EQ(cluster.node_of(cluster.submit(4)), "");
  cluster.end(first);
  EXPECT_EQ(cluster.nodes_of(gang), (Names{"n1", "n2"}));
}

/// The rack where least has to end, however long that takes: what is left of it is not given away.
TEST(Gathering, KeepsItsPlaceWhereLeastIsMissing) {
  Cluster cluster({{"n0", "a", "1"}, {"n1", "a", "1"}, {"n2", "b", "1"}, {"n3", "b", "1"}});
  const JobId old = cluster.submit(1, kNoGang, "n0");
  cluster.pass(std::chrono::hours(10));
  (void)cluster.submit(4, kNoGang, "n2");
  (void)cluster.submit(4, kNoGang, "n3");
  cluster.pass(std::chrono::hours(1));
  const auto gang = cluster.submit_gang(2, 4, 2);
  cluster.pass(std::chrono::minutes(60));
  EXPECT_EQ(cluster.node_of(cluster.submit(1)), "") << "seven of eight GPUs are free in rack a";
  cluster.end(old);
  EXPECT_EQ(cluster.nodes_of(gang), (Names{"n0", "n1"}));
}

/// A place that is kept now here and now there is never free.
TEST(Gathering, StaysWithTheRackWhereItsPlaceIsKept) {
  Cluster cluster({{"n0", "a", "1"}, {"n1", "a", "1"}, {"n2", "b", "1"}, {"n3", "b", "1"}});
  const JobId old = cluster.submit(4, kNoGang, "n0");
  cluster.pass(std::chrono::hours(10));
  std::vector<JobId> young;
  for (const char* node : {"n2", "n2", "n3", "n3"}) {
    young.push_back(cluster.submit(2, kNoGang, node));
  }
  cluster.pass(std::chrono::hours(1));
  const auto gang = cluster.submit_gang(2, 4, 2);
  cluster.end(young[0]);
  cluster.end(young[2]);
  cluster.pass(std::chrono::minutes(60));
  const JobId other = cluster.submit(1);
  EXPECT_TRUE((Names{"n2", "n3"}).contains(cluster.node_of(other)))
      << "as much is missing in rack b now, and sooner there";
  cluster.end(old);
  EXPECT_EQ(cluster.nodes_of(gang), (Names{"n0", "n1"}));
}

TEST(Gathering, LargerThanAnyRackKeepsNoPlace) {
  Cluster cluster(kTwoBlocks);
  (void)cluster.submit_gang(4, 4, 2);
  cluster.pass(std::chrono::minutes(60));
  std::vector<JobId> others;
  for (int i = 0; i < 6; ++i) others.push_back(cluster.submit(4));
  EXPECT_FALSE(cluster.nodes_of(others).contains(""));
}

/// In no other rack it could go on with its gang.
TEST(Gathering, KeepsThePlaceOfOneThatPauses) {
  Cluster cluster(kTwoBlocks);
  const auto gang = cluster.submit_gang(3, 4, 2);
  ASSERT_EQ(cluster.nodes_of(gang), (Names{"n3", "n4", "n5"}));
  std::vector<JobId> others;
  for (int i = 0; i < 4; ++i) others.push_back(cluster.submit(4));
  ASSERT_EQ(cluster.nodes_of(others), (Names{"n0", "n1", "n2", ""}));
  cluster.fail(gang[1]);
  EXPECT_EQ(cluster.node_of(others.back()), "") << "the node of one that pauses is free";
  cluster.pass(std::chrono::minutes(1));
  cluster.tell(event::Tick{});
  EXPECT_FALSE(cluster.nodes_of(gang).contains(""));
  EXPECT_EQ(cluster.node_of(others.back()), "");
  cluster.end(gang[1]);
  EXPECT_NE(cluster.node_of(others.back()), "") << "nothing is kept for one that has ended";
}

TEST(Gathering, TriesOtherDomainsThanThoseThatAreAvoided) {
  Cluster cluster({{"n0", "a", "1"}, {"n1", "a", "1"}, {"n2", "b", "1"}, {"n3", "b", "1"}});
  auto gang = cluster.submit_gang(2, 4, 2);
  ASSERT_EQ(cluster.nodes_of(gang), (Names{"n0", "n1"}));
  EXPECT_TRUE(cluster.state().avoid_last_domain(kNearGang));
  EXPECT_FALSE(cluster.state().avoid_last_domain(kNearGang)) << "it is already";
  cluster.state().hold_gang(kNearGang, true);
  for (const JobId id : gang) cluster.tell(event::AttemptRevoked{id, 1});
  cluster.state().hold_gang(kNearGang, false);
  cluster.tell(event::Tick{});
  EXPECT_EQ(cluster.nodes_of(gang), (Names{"n2", "n3"}));
}

/// Nothing is kept for it where it does not fit, for what is not counted here.
TEST(Gathering, KeepsNoPlaceInDomainsThatWereRefused) {
  Cluster cluster({{"n0", "a", "1"}, {"n1", "a", "1"}, {"n2", "b", "1"}, {"n3", "b", "1"}});
  const auto gang = cluster.submit_gang(2, 4, 2);
  for (int domains = 0; domains < 2; ++domains) {
    ASSERT_FALSE(cluster.nodes_of(gang).contains(""));
    EXPECT_TRUE(cluster.state().avoid_last_domain(kNearGang));
    cluster.take_back(gang);
    cluster.tell(event::Tick{});
  }
  ASSERT_EQ(cluster.nodes_of(gang), Names{""});
  cluster.pass(std::chrono::minutes(60));
  std::vector<JobId> others;
  for (int i = 0; i < 4; ++i) others.push_back(cluster.submit(4));
  EXPECT_EQ(cluster.nodes_of(others), (Names{"n0", "n1", "n2", "n3"}));
}

TEST(Gathering, AvoidsNoDomainInWhichItDidNotStart) {
  Cluster cluster(kTwoBlocks);
  const auto gang = cluster.submit_gang(2, 4, 2);
  cluster.take_back(gang);
  cluster.put_gang(2, 0, 0);
  ASSERT_FALSE(cluster.nodes_of(gang).contains(""));
  EXPECT_FALSE(cluster.state().avoid_last_domain(kNearGang)) << "it may be anywhere now";
}

TEST(Gathering, OfNoGangThatIsThereChangesNothing) {
  Cluster cluster(kTwoBlocks);
  constexpr GangNumber kNobodys = 99;
  cluster.state().hold_gang(kNobodys, true);
  cluster.state().avoid_no_domain(kNobodys);
  EXPECT_FALSE(cluster.state().avoid_last_domain(kNobodys));
}

TEST(Gathering, OfJobsOfDifferentSizes) {
  Cluster cluster(
      {{"n0", "a", "1", 4}, {"n1", "a", "1", 2}, {"n2", "a", "2", 2}, {"n3", "a", "2", 2}});
  cluster.put_gang(3, 2, 0);
  const JobId a = cluster.submit(2, kNearGang);
  const JobId b = cluster.submit(2, kNearGang);
  const JobId c = cluster.submit(1, kNearGang);
  EXPECT_EQ(cluster.nodes_of({a, b, c}), (Names{"n0", "n1"}));
}

/// All clusters of a few nodes: where there is a domain that holds all of the gang they are in the
/// one with least room, in as few of the next level as can be; else nowhere, or in as few as can
/// be.
class GatheringInAll : public testing::Test {
 protected:
  using Rooms = std::map<std::string, int>;

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  std::vector<RackNode> places() {
    std::vector<RackNode> made;
    for (int i = 2 + below(9); i > 0; --i) {
      RackNode place{
          fmt::format("n{}", i), fmt::format("{}", below(3)), fmt::format("{}", below(3))};
      place.gpus = 1 + below(4);
      if (below(8) == 0) place.rack = "-";
      if (below(8) == 0) place.block = "-";
      made.push_back(place);
    }
    return made;
  }
  /// The fewest of them that hold so many; nothing if all do not.
  static std::optional<std::size_t> fewest(const Rooms& rooms, int jobs) {
    std::optional<std::size_t> best;
    for (unsigned set = 0; set < 1U << rooms.size(); ++set) {
      int room = 0;
      std::size_t count = 0;
      unsigned bit = 1;
      for (const auto& [name, its] : rooms) {
        if ((set & bit) != 0) room += its, ++count;
        bit <<= 1U;
      }
      if (room >= jobs && (!best || count < *best)) best = count;
    }
    return best;
  }

  std::mt19937 random_{20261130};
};

std::string domain_of(const RackNode& place, std::size_t level) {
  if (place.block == "-" || (level == 2 && place.rack == "-")) return "";
  return level == 1 ? place.block : place.block + "/" + place.rack;
}

TEST_F(GatheringInAll, IsAsBruteForceFinds) {
  int started = 0;
  int kept_out = 0;
  for (int round = 0; round < 1'000; ++round) {
    const std::vector<RackNode> there = places();
    Cluster cluster(there);
    std::map<std::string, int> free;
    for (const RackNode& place : there) {
      const int used = below(place.gpus + 1);
      if (used > 0) (void)cluster.submit(used, kNoGang, place.name);
      free[place.name] = place.gpus - used;
    }
    const int gpus = 1 + below(3);
    const int jobs = 1 + below(6);
    const auto required = static_cast<std::size_t>(below(3));
    std::map<std::size_t, Rooms> rooms;  // by level
    std::map<std::string, Rooms> racks;  // of each block
    for (const RackNode& place : there) {
      const int room = free[place.name] / gpus;
      for (const std::size_t level : {1U, 2U}) {
        if (!domain_of(place, level).empty()) rooms[level][domain_of(place, level)] += room;
      }
      if (!domain_of(place, 2).empty()) racks[place.block][domain_of(place, 2)] += room;
    }
    const auto gang =
        cluster.submit_gang(static_cast<std::size_t>(jobs), gpus, required, required > 0 ? 0 : 2);
    std::map<std::size_t, Rooms> used;
    for (const JobId id : gang) {
      const std::string node = cluster.node_of(id);
      const auto place = std::ranges::find(there, node, &RackNode::name);
      for (const std::size_t level : {1U, 2U}) {
        if (place != there.end()) ++used[level][domain_of(*place, level)];
      }
    }
    // The smallest room of one domain of the level that holds all; nothing if none does.
    const auto smallest = [&](std::size_t level) {
      std::optional<int> best;
      for (const auto& [name, room] : rooms[level]) {
        if (room >= jobs && (!best || room < *best)) best = room;
      }
      return best;
    };
    const auto is_in_smallest = [&](std::size_t level) {
      return used[level].size() == 1 && !used[level].begin()->first.empty() &&
             rooms[level][used[level].begin()->first] == *smallest(level);
    };
    if (required > 0) {
      EXPECT_EQ(!used[1].empty(), smallest(required).has_value()) << "round " << round;
      if (used[1].empty()) ++kept_out;
      if (used[1].empty()) continue;
      EXPECT_TRUE(is_in_smallest(required)) << "round " << round;
    } else if (smallest(2)) {
      EXPECT_TRUE(is_in_smallest(2)) << "round " << round;
    } else if (smallest(1)) {
      EXPECT_TRUE(is_in_smallest(1)) << "round " << round;
    } else if (const auto blocks = fewest(rooms[1], jobs)) {
      EXPECT_EQ(used[1].size(), *blocks) << "round " << round;
    }
    if (used[1].size() == 1 && !used[1].begin()->first.empty()) {
      const auto few = fewest(racks[used[1].begin()->first], jobs);
      if (few) {
        EXPECT_EQ(used[2].size(), *few) << "round " << round;
      }
    }
    if (!used[1].empty()) ++started;
  }
  EXPECT_GT(started, 200);
  EXPECT_GT(kept_out, 200);
}

}  // namespace
}  // namespace gflow::engine
