// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/gpu_request.h"
#include "core/machine_for_tests.h"
#include "core/principal.h"
#include "engine/step.h"

/// Jobs that start together or not at all.
namespace gflow::engine {
namespace {

constexpr GangNumber kGang = 7;

/// Nodes n0 and n1 of two GPUs each.
class GangsTest : public testing::Test {
 protected:
  GangsTest() {
    state.restored(JobId(1));
    twin.restored(JobId(1));
    for (const char* name : {"n0", "n1"}) (void)tell(event::NodesChanged{{node(name)}});
  }

  static Policy by_submission() {
    Policy policy;
    policy.order.order = Order::Submission;
    return policy;
  }
  static Machine node(const std::string& name, int gpus = 2) {
    return machine_with_gpus(name, gpus, "Tesla T4", Memory::gib(16));
  }

  JobId submit(std::string_view gpus, GangNumber gang = kNoGang, int priority = kDefaultPriority) {
    JobSpec spec;
    spec.user = {1000, "alice"};
    spec.priority = priority;
    apply(*parse_gpu_request(gpus), spec.request);
    const JobId id = state.next_id();
    if (gang != kNoGang) {
      state.join_gang(id, gang);
      twin.join_gang(id, gang);
    }
    started = tell(event::Submit{{spec}, system_principal()});
    return id;
  }
  void put_gang(GangNumber gang, std::size_t least) {
    state.put_gang(gang, least);
    twin.put_gang(gang, least);
  }
  /// Who is started for it. What is remembered of those that did not fit makes no difference.
  std::set<JobId> tell(const Event& event) {
    now.mono += std::chrono::seconds(1);
    std::set<JobId> told;
    for (const Effect& effect : step(state, event, now)) {
      const auto* launch = std::get_if<effect::Launch>(&effect);
      if (launch == nullptr) continue;
      told.insert(launch->order->job);
      running[launch->order->job] = launch->order->attempt;
    }
    EXPECT_EQ(state.check(), "");
    twin.look_at_all_again();
    std::set<JobId> anew;
    for (const Effect& effect : step(twin, event, now)) {
      if (const auto* launch = std::get_if<effect::Launch>(&effect)) {
        anew.insert(launch->order->job);
      }
    }
    EXPECT_EQ(told, anew);
    return told;
  }
  std::set<JobId> end(JobId id) {
    const int attempt = running.at(id);
    running.erase(id);
    Outcome outcome;
    outcome.exit_code = 0;
    return tell(event::AttemptEnded{id, attempt, outcome});
  }

  static std::size_t least(GangNumber gang) { return 1 + gang % 4; }
  [[nodiscard]] std::size_t waiting_of(GangNumber gang) const {
    std::size_t waiting = 0;
    for (const auto& [id, number] : members) {
      const Job* job = state.find(id);
      if (number == gang && job != nullptr && is_pending(*job)) ++waiting;
    }
    return waiting;
  }

  State state{by_submission(), "boot"};
  State twin{by_submission(), "boot"};  ///< looks at everything anew
  std::map<JobId, GangNumber> members;
  Now now{.wall = WallTime(std::chrono::hours(1)), .mono = MonoTime(std::chrono::hours(1))};
  std::set<JobId> started;
  std::map<JobId, int> running;
};

using Ids = std::set<JobId>;

TEST_F(GangsTest, StartsWhenAllAreThereAndAtOnce) {
  put_gang(kGang, 4);
  const JobId a = submit("1", kGang);
  const JobId b = submit("1", kGang);
  const JobId c = submit("1", kGang);
  EXPECT_TRUE(running.empty());
  EXPECT_EQ(state.blockers(b, now), std::vector<Blocker>{blocker::Gang({4, 3, {}})});
  const JobId d = submit("1", kGang);
  EXPECT_EQ(started, (Ids{a, b, c, d}));
}

TEST_F(GangsTest, HoldsUpNobodyWhileItIsNotComplete) {
  put_gang(kGang, 4);
  submit("1", kGang, 200);
  const JobId other = submit("2");
  EXPECT_EQ(started, Ids{other});
}

TEST_F(GangsTest, HoldsNothingWhereThereIsRoomForSomeOnly) {
  const JobId other = submit("1");
  put_gang(kGang, 4);
  Ids gang;
  for (int i = 0; i < 4; ++i) gang.insert(submit("1", kGang));
  EXPECT_EQ(running.size(), 1U);
  EXPECT_EQ(state.totals().gpus_free, 3);
  EXPECT_EQ(state.blockers(*gang.begin(), now).front(), Blocker(blocker::Gang{4, 4, 3}));
  EXPECT_EQ(state.pending_reasons().by_kind.at(static_cast<std::size_t>(BlockerKind::Gang)), 4U);
  EXPECT_EQ(end(other), gang);
}

TEST_F(GangsTest, OfSeveralKindsStartsWhole) {
  const JobId other = submit("1");
  put_gang(kGang, 3);
  const JobId chief = submit("2", kGang);
  const JobId first = submit("1", kGang);
  const JobId second = submit("1", kGang);
  EXPECT_EQ(running.size(), 1U);
  EXPECT_EQ(end(other), (Ids{chief, first, second}));
}

TEST_F(GangsTest, TakesMoreThanItNeedsWhereThereIsRoom) {
  put_gang(kGang, 2);
  const JobId other = submit("4");  // never fits
  EXPECT_EQ(state.find(other), nullptr);
  (void)submit("1", kGang);
  const JobId second = submit("1", kGang);
  EXPECT_EQ(started.size(), 2U);
  const JobId third = submit("1", kGang);
  EXPECT_EQ(started, Ids{third});
  EXPECT_EQ(end(second), Ids{});
  const JobId again = submit("1", kGang);
  EXPECT_EQ(started, Ids{again});
}

TEST_F(GangsTest, WithSomeThatMayStartAloneLeavesTheRestInTheQueue) {
  put_gang(kGang, 2);
  const JobId a = submit("2", kGang);
  const JobId other = submit("1");
  const JobId b = submit("2", kGang);
  EXPECT_EQ(started, Ids{}) << "one node has one GPU left";
  const JobId c = submit("1", kGang);
  EXPECT_EQ(started, (Ids{a, c})) << "in place of the one that does not fit";
  EXPECT_EQ(end(other), Ids{});
  EXPECT_EQ(end(c), Ids{b});
}

TEST_F(GangsTest, MissesNobodyWhoEnded) {
  put_gang(kGang, 3);
  const JobId a = submit("1", kGang);
  const JobId b = submit("1", kGang);
  submit("1", kGang);
  EXPECT_EQ(started.size(), 3U);
  (void)end(a);
  (void)end(b);
  const JobId again = submit("1", kGang);
  EXPECT_EQ(started, Ids{again}) << "the other one that ended may never be made anew";
}

/// Whole jobs are made anew while the old ones still clean up.
TEST_F(GangsTest, CountsNobodyWhoIsToldToStop) {
  put_gang(kGang, 2);
  const JobId a = submit("1", kGang);
  const JobId b = submit("1", kGang);
  ASSERT_EQ(started, (Ids{a, b}));
  for (const JobId id : {a, b}) (void)tell(event::StopBegun{id, 1});
  const JobId other = submit("1");
  EXPECT_EQ(submit("1", kGang), JobId(4));
  EXPECT_EQ(submit("1", kGang), JobId(5));
  EXPECT_EQ(started, Ids{}) << "one GPU is free";
  EXPECT_EQ(end(a), (Ids{JobId(4), JobId(5)}));
  EXPECT_TRUE(running.contains(other));
}

/// Who waits may start alone once too few wait to start together.
TEST_F(GangsTest, OfWhichOneLeavesGoesOnWithTheRest) {
  put_gang(kGang, 3);
  Ids first;
  for (int i = 0; i < 3; ++i) first.insert(submit("1", kGang));
  ASSERT_EQ(started, first);
  (void)end(JobId(1));
  (void)end(JobId(2));
  const JobId large = submit("2", kGang);
  EXPECT_EQ(started, Ids{large}) << "the others ended";
  (void)end(JobId(3));
  const JobId other = submit("1");
  ASSERT_EQ(started, Ids{other});
  (void)submit("2", kGang);
  const JobId small = submit("1", kGang);
  ASSERT_EQ(started, Ids{}) << "two start together, and there is room for one";
  EXPECT_EQ(tell(event::Cancel{{JobId(6)}, system_principal()}), Ids{small});
}

TEST_F(GangsTest, LargerThanAllThereIsKeepsNobodysPlaceFromOthers) {
  (void)tell(event::NodeRemoved{"n1", ""});
  const JobId one = submit("1");
  put_gang(kGang, 3);
  for (int i = 0; i < 3; ++i) submit("1", kGang);
  const JobId large = submit("2");
  now.mono += std::chrono::hours(1);
  submit("1");
  EXPECT_EQ(started, Ids{}) << "the one behind the gang has a place";
  EXPECT_EQ(end(one), Ids{large});
}

TEST_F(GangsTest, KeepsToTheLimitOfItsUserAsAWhole) {
  Policy policy = by_submission();
  policy.gpu_quota.per_user = 3;
  (void)tell(event::Configure{policy});
  put_gang(kGang, 4);
  for (int i = 0; i < 4; ++i) submit("1", kGang);
  EXPECT_TRUE(running.empty());
  const std::vector<Blocker> why = state.blockers(JobId(1), now);
  ASSERT_FALSE(why.empty());
  EXPECT_EQ(why.front(),
            Blocker(blocker::GpuLimit{Share::percent(400), Share{}, Share::percent(300), {}, {}}));
  const JobId small = submit("1");
  EXPECT_EQ(started, Ids{small}) << "it holds up nobody";
  policy.gpu_quota.per_user = 4;
  EXPECT_EQ(tell(event::Configure{policy}), Ids{});
  EXPECT_EQ(end(small).size(), 4U);
}

TEST_F(GangsTest, ThatNeedsFewerNowStarts) {
  const JobId other = submit("1");
  put_gang(kGang, 4);
  Ids gang;
  for (int i = 0; i < 4; ++i) gang.insert(submit("1", kGang));
  put_gang(kGang, 3);
  EXPECT_EQ(tell(event::Tick{}).size(), 3U);
  EXPECT_EQ(end(other).size(), 1U);
}

TEST_F(GangsTest, KeepsItsPlaceAgainstThoseThatCome) {
  const JobId other = submit("1");
  put_gang(kGang, 4);
  Ids gang;
  for (int i = 0; i < 4; ++i) gang.insert(submit("1", kGang));
  const JobId passing = submit("1");
  EXPECT_EQ(started, Ids{passing}) << "it is patient for a while";
  now.mono += std::chrono::hours(1);
  const JobId late = submit("1");
  EXPECT_EQ(started, Ids{});
  EXPECT_EQ(end(other), Ids{});
  EXPECT_EQ(end(passing), gang);
  for (const JobId id : gang) (void)end(id);
  EXPECT_TRUE(running.contains(late));
}

TEST_F(GangsTest, LetsThoseStartThatTakeNothingOfItsPlace) {
  const JobId other = submit("1");
  put_gang(kGang, 2);
  const JobId a = submit("2", kGang);
  const JobId b = submit("2", kGang);
  now.mono += std::chrono::hours(1);
  const JobId small = submit("1");
  EXPECT_EQ(started, Ids{});
  EXPECT_EQ(tell(event::NodesChanged{{node("n2", 1)}}), Ids{small});
  EXPECT_EQ(end(other), (Ids{a, b}));
}

TEST_F(GangsTest, OfAHigherPriorityGoesFirst) {
  const JobId other = submit("2");
  const JobId large = submit("2");
  const JobId waits = submit("2", kNoGang, 10);
  put_gang(kGang, 2);
  const JobId a = submit("1", kGang, 10);
  const JobId b = submit("1", kGang, 20);
  EXPECT_EQ(end(other), (Ids{a, b}));
  EXPECT_EQ(end(large), Ids{waits});
}

/// A large one is not tried where there is not as much in all.
TEST_F(GangsTest, LargerThanWhatIsThereCostsNothing) {
  (void)tell(event::NodesChanged{{node("n2", 32)}});
  put_gang(kGang, 70);
  for (int i = 0; i < 69; ++i) submit("1", kGang);
  const std::uint64_t looks = state.looks();
  const JobId last = submit("1", kGang);
  EXPECT_EQ(state.looks(), looks);
  EXPECT_EQ(state.blockers(last, now).front(), Blocker(blocker::Gang{70, 70, {}}));
  EXPECT_EQ(tell(event::NodesChanged{{node("n3", 34)}}).size(), 70U);
}

/// What comes and goes, told by chance: nobody starts alone who should not, nothing is held by one
/// that does not start, and who is complete and has the machines to itself starts.
TEST_F(GangsTest, AreWholeWhateverComes) {
  std::mt19937 random(20261128);
  const auto pick = [&random](int most) {
    return std::uniform_int_distribution<int>(0, most - 1)(random);
  };
  for (int round = 0; round < 300; ++round) {
    std::map<GangNumber, std::pair<std::size_t, std::size_t>> before;  // waiting, active
    const auto count = [&](const JobId id, GangNumber gang) {
      const Job* job = state.find(id);
      if (job == nullptr || is_ended(*job)) return;
      auto& [waiting, active] = before[gang];
      ++(is_active(*job) ? active : waiting);
    };
    for (const auto& [id, gang] : members) count(id, gang);
    Ids now_started;
    switch (pick(6)) {
      case 0:
      case 1: {
        const auto gang = static_cast<GangNumber>(pick(6));
        if (gang != kNoGang) {
          put_gang(gang, least(gang));
          members[state.next_id()] = gang;
          ++before[gang].first;
        }
        submit(pick(3) == 0 ? "2" : "1", gang, 10 + pick(2));
        now_started = started;
        break;
      }
      case 2:
      case 3:
        if (running.empty()) break;
        {
          const auto at = std::next(running.begin(), pick(static_cast<int>(running.size())));
          const JobId id = at->first;
          if (members.contains(id)) --before[members[id]].second;
          now_started = end(id);
        }
        break;
      case 4: {
        std::vector<JobId> waiting;
        for (JobId id(1); id < state.next_id(); id = JobId(id.value + 1)) {
          if (const Job* job = state.find(id); job != nullptr && is_pending(*job)) {
            waiting.push_back(id);
          }
        }
        if (waiting.empty()) break;
        const JobId id =
            waiting.at(static_cast<std::size_t>(pick(static_cast<int>(waiting.size()))));
        if (members.contains(id)) --before[members[id]].first;
        now_started = tell(event::Cancel{{id}, system_principal()});
        break;
      }
      default:
        now.mono += std::chrono::minutes(pick(60));
        now_started = tell(event::Tick{});
    }
    std::map<GangNumber, std::size_t> starts;
    for (const JobId id : now_started) {
      if (members.contains(id)) ++starts[members[id]];
    }
    for (const auto& [gang, number] : starts) {
      const auto [waiting, active] = before[gang];
      const bool was_alone = active >= least(gang) || active + waiting < least(gang);
      EXPECT_TRUE(was_alone || active + number >= least(gang)) << "gang " << gang;
      EXPECT_TRUE(active > 0 || number >= least(gang)) << "gang " << gang;
    }
  }
  (void)tell(event::NodesChanged{{node("n2", 32)}});
  while (!running.empty()) (void)end(running.begin()->first);
  for (const auto& [id, gang] : members) {
    const Job* job = state.find(id);
    if (job == nullptr || is_ended(*job)) continue;
    EXPECT_LT(waiting_of(gang), least(gang)) << "gang " << gang;
  }
}

}  // namespace
}  // namespace gflow::engine
