// SPDX-License-Identifier: Apache-2.0
#include "kube/picture.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <variant>

#include "core/blocker.h"
#include "kube/job_id.h"
#include "kube/want.h"

namespace gflow::kube {
namespace {

using std::chrono::seconds;

constexpr Now kDrawn{WallTime(seconds(1'800'000'000)), MonoTime(seconds(50))};

/// What is read of a cluster with one node "v" of two V100, 8 CPUs and 32 GiB.
class Scene {
 public:
  Scene() { node("v"); }

  Node& node(const std::string& name) {
    Node& made = facts.nodes[name];
    made.uid = made.name = name;
    made.labels = {{"gpu-type", "V100"}};
    made.allocatable = {{"cpu", 8000},
                        {"memory", std::int64_t{32} << 40},
                        {"pods", 110'000},
                        {"nvidia.com/gpu", 2000}};
    return made;
  }
  /// Each a second younger than the one before.
  Pod& pod(const std::string& name, const std::string& gpu = "", std::int64_t milli_cpus = 0) {
    Pod& made = facts.pods[name];
    made.uid = made.name = name;
    made.name_space = "default";
    made.scheduler = "gflow";
    made.gpu = gpu;
    made.created = kDrawn.wall - seconds(1000) + seconds(facts.pods.size());
    if (milli_cpus > 0) made.requests["cpu"] = milli_cpus;
    return made;
  }
  Pod& on_node(Pod& pod, int first, int gpus) {
    pod.node = "v";
    pod.started = kDrawn.wall - seconds(60);
    ChosenDevices chosen{"v", {}};
    for (int i = first; i < first + gpus; ++i) chosen.devices.push_back({"nvidia.com/gpu", i});
    if (gpus > 0) pod.allocation = text_of(chosen);
    return pod;
  }
  void draw() {
    picture = picture_of(facts, kDrawn, 7);
    EXPECT_EQ(picture.state.check(), "");
  }
  [[nodiscard]] const Job& job(const std::string& name) {
    return *picture.state.find(job_id_of(facts.pods.at(name)));
  }
  [[nodiscard]] std::string reason(const std::string& name) {
    return reason_text(picture.state.blockers(job_id_of(facts.pods.at(name)), kDrawn));
  }

  ClusterFacts facts;
  Picture picture{engine::State({}, ""), {}, {}};
};

TEST(Picture, ShowsPodsAsJobsOfTheirNamespace) {
  Scene cluster;
  cluster.on_node(cluster.pod("train", "2(V100)", 2000), 0, 2);
  cluster.pod("waits", "1");
  cluster.pod("theirs").scheduler = "default-scheduler";
  cluster.draw();
  EXPECT_EQ(cluster.picture.state.size(), 2U);
  EXPECT_EQ(cluster.picture.state.revision(), 7U);
  const Job& train = cluster.job("train");
  EXPECT_EQ(train.spec.name, "train");
  EXPECT_EQ(train.spec.user.name, "default");
  EXPECT_EQ(status_of(train), Status::Running);
  EXPECT_EQ(run_time_of(train, kDrawn.mono), seconds(60));
  EXPECT_EQ(attempt_of(train)->allocation, (Allocation{"v", {0, 1}, {}}));
  EXPECT_EQ(status_of(cluster.job("waits")), Status::Queued);
  EXPECT_EQ(cluster.reason("waits"), "Resources");
}

TEST(Picture, DecidesNothing) {
  Scene cluster;
  cluster.pod("waits", "1");
  cluster.draw();
  EXPECT_EQ(status_of(cluster.job("waits")), Status::Queued);
  EXPECT_EQ(cluster.reason("waits"), "") << "there is room; that it is not used is told by no more";
  EXPECT_EQ(cluster.picture.state.totals().gpus_free, 2);
}

TEST(Picture, TellsWhoIsAhead) {
  Scene cluster;
  cluster.on_node(cluster.pod("runs", "1"), 0, 1);
  cluster.pod("large", "2");
  cluster.pod("small", "1");
  cluster.draw();
  const auto why =
      cluster.picture.state.blockers(job_id_of(cluster.facts.pods.at("small")), kDrawn);
  ASSERT_EQ(why.size(), 1U);
  EXPECT_EQ(std::get<blocker::Priority>(why.front()).behind,
            job_id_of(cluster.facts.pods.at("large")));
}

TEST(Picture, HoldsWhatIsNotLookedAtAndSaysWhy) {
  Scene cluster;
  cluster.pod("gated", "1").is_gated = true;
  cluster.pod("asks", "1.5");
  Pod& told = cluster.pod("told", "1");
  told.unjudged = {"podAffinity"};
  told.told = "it has podAffinity";
  cluster.draw();
  EXPECT_EQ(cluster.reason("gated"),
            "JobHeld: gflow-kube does not take it: it has scheduling gates");
  EXPECT_TRUE(cluster.reason("asks").contains("whole GPUs")) << cluster.reason("asks");
  EXPECT_EQ(cluster.reason("told"), "JobHeld: gflow-kube does not take it: it has podAffinity");
  EXPECT_EQ(cluster.picture.told.at(job_id_of(told)), "it has podAffinity");
}

TEST(Picture, CountsWholeCpus) {
  Scene cluster;
  cluster.on_node(cluster.pod("a", "", 1500), 0, 0);
  cluster.on_node(cluster.pod("b", "", 700), 0, 0);
  cluster.pod("waits", "", 100);
  cluster.draw();
  EXPECT_EQ(cluster.job("a").spec.request.cpus, 1);
  EXPECT_EQ(cluster.job("b").spec.request.cpus, 0);
  EXPECT_EQ(cluster.job("waits").spec.request.cpus, 1);
  EXPECT_EQ(cluster.picture.state.totals().cpus_free, 5) << "of 8 they have 2.2";
}

TEST(Picture, ShowsNodesThatTakeNoPodsAsDrained) {
  Scene cluster;
  cluster.node("cordoned").is_cordoned = true;
  cluster.node("away").taints = {{"node.kubernetes.io/unreachable", "", "NoExecute"}};
  cluster.node("of-a-team").taints = {{"team", "vision", "NoSchedule"}};
  cluster.draw();
  const auto& drains = cluster.picture.state.drains();
  ASSERT_EQ(drains.size(), 2U);
  EXPECT_EQ(drains[0].node + ": " + drains[0].reason, "away: node.kubernetes.io/unreachable");
  EXPECT_EQ(drains[1].node + ": " + drains[1].reason, "cordoned: cordoned");
}

TEST(Picture, ShowsWhatKeepsPodsFromNodes) {
  Scene cluster;
  Pod& waits = cluster.pod("waits", "1");
  cluster.draw();
  EXPECT_TRUE(cluster.job("waits").spec.request.selector.empty()) << "every node takes it";
  waits.wishes.node_selector = {{"disk", "ssd"}};
  cluster.draw();
  EXPECT_EQ(cluster.job("waits").spec.request.selector.size(), 1U);
  EXPECT_NE(cluster.reason("waits"), "");
}

/// As many as it asks for are nobody else's, and which nobody knows.
TEST(Picture, ShowsAPodThatDoesNotSayWhatItHas) {
  Scene cluster;
  Pod& pod = cluster.on_node(cluster.pod("lost", "1"), 0, 0);
  pod.allocation.clear();
  cluster.draw();
  EXPECT_EQ(status_of(cluster.job("lost")), Status::Running);
  EXPECT_TRUE(attempt_of(cluster.job("lost"))->allocation.gpus.empty());
  EXPECT_EQ(cluster.picture.state.totals().gpus_free, 1);
}

/// How many start together by a PodGroup is not known to who does not read it: the scheduler says.
TEST(Picture, ShowsPodsOfGangsAsTheyWait) {
  Scene cluster;
  cluster.pod("a", "1").gang = {{GangSource::Volcano, "default", "g"}, 0};
  cluster.pod("b", "1").gang = {{GangSource::Pods, "default", "h"}, 3};
  cluster.draw();
  EXPECT_EQ(status_of(cluster.job("a")), Status::Queued);
  EXPECT_EQ(status_of(cluster.job("b")), Status::Queued);
  EXPECT_EQ(cluster.reason("b"), "Gang: 3 jobs start together, of which 1 wait");
}

/// Where somebody wrote no level, or the levels are not known, there are no moves for it.
TEST(Picture, ShowsAGangThatCannotStart) {
  for (const bool are_unread : {false, true}) {
    Scene cluster;
    cluster.facts.are_levels_unread = are_unread;
    for (const char* name : {"a", "b"}) {
      Pod& pod = cluster.pod(name, "1");
      pod.gang = {{GangSource::Pods, "default", "g"}, 2};
      pod.near = {.required = "row", .is_own = !are_unread};
    }
    cluster.draw();
    const auto plans = cluster.picture.state.defrag(100, kDrawn);
    ASSERT_FALSE(plans.empty());
    EXPECT_EQ(plans.front().outcome, DefragOutcome::WaitsForMore) << are_unread;
  }
}

/// From its submission on, through two pods, to its end.
TEST(Picture, ShowsAJobThatWasSubmittedByOneNumber) {
  Scene cluster;
  BatchJob& job = cluster.facts.jobs["u"];
  job.name = "train-1f";
  job.max_retries = 1;
  job.stand_in = cluster.pod("train", "1");
  job.stand_in.uid = "u";
  cluster.facts.pods.clear();
  cluster.draw();
  const JobId number = cluster.picture.numbers.at("u");
  EXPECT_EQ(status_of(*cluster.picture.state.find(number)), Status::Queued);

  Pod& pod = cluster.on_node(cluster.pod("train-1f-a", "1"), 1, 1);
  pod.job = "u";
  cluster.draw();
  EXPECT_EQ(cluster.picture.state.size(), 1U);
  const Job& running = *cluster.picture.state.find(number);
  EXPECT_EQ(running.spec.name, "train");
  EXPECT_EQ(attempt_of(running)->allocation, (Allocation{"v", {1}, {}}));

  EndedPod& ended = cluster.facts.ended["a"];
  ended.job = "u";
  ended.node = "v";
  ended.allocation = pod.allocation;
  ended.at = ended.started = kDrawn.wall;
  ended.outcome.exit_code = 3;
  cluster.facts.pods.clear();
  cluster.draw();
  EXPECT_EQ(status_of(*cluster.picture.state.find(number)), Status::Queued) << "it is tried again";

  job.verdict = Verdict{.reason = "BackoffLimitExceeded", .message = {}, .at = kDrawn.wall};
  cluster.draw();
  const Job& over = *cluster.picture.state.find(number);
  EXPECT_EQ(status_of(over), Status::Failed);
  EXPECT_EQ(attempt_of(over)->allocation, (Allocation{"v", {1}, {}}));
}

TEST(Picture, ShowsASuspendedJobOnHold) {
  Scene cluster;
  BatchJob& job = cluster.facts.jobs["u"];
  job.is_suspended = true;
  job.stand_in = cluster.pod("train", "1");
  job.stand_in.uid = "u";
  cluster.facts.pods.clear();
  cluster.draw();
  EXPECT_EQ(status_of(*cluster.picture.state.find(cluster.picture.numbers.at("u"))), Status::Hold);
}

TEST(Picture, KnowsTheLimitOfANamespace) {
  Scene cluster;
  cluster.facts.quota.per_user = 1;
  cluster.on_node(cluster.pod("a", "1"), 0, 1);
  cluster.pod("b", "1");
  cluster.draw();
  EXPECT_EQ(cluster.reason("b"), "GpuLimit: Need 1 GPU, its user holds 1 and may hold 1 at once");
}

}  // namespace
}  // namespace gflow::kube
