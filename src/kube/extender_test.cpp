// SPDX-License-Identifier: Apache-2.0
#include "kube/extender.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "kube/extender_answers.h"
#include "kube/want.h"

namespace gflow::kube {
namespace {

constexpr int kGpusThere = 4;  // of each node

Node node_with(const std::string& name, int gpus, const std::string& model = "V100") {
  Node node;
  node.uid = node.name = name;
  node.labels = {{"gpu-type", model}};
  node.allocatable = {{"cpu", 8000}, {"nvidia.com/gpu", gpus * 1000}};
  return node;
}

Pod pod_that_asks(const std::string& name, const std::string& gpu) {
  Pod pod;
  pod.uid = pod.name = name;
  pod.name_space = "default";
  pod.gpu = gpu;
  return pod;
}

class ExtenderTest : public testing::Test {
 protected:
  ExtenderTest() {
    for (const std::string& name : names) extender.put(node_with(name, kGpusThere));
  }
  /// "a: why" of each that cannot have it, "!" where that is final.
  std::string refused(const Pod& pod) {
    std::string text;
    for (const auto& [node, refusal] : extender.refusals(pod, names, MonoTime{})) {
      text += fmt::format(
          "{}{}{}: {}", text.empty() ? "" : ", ", node, refusal.is_final ? "!" : "", refusal.why);
    }
    return text;
  }
  /// As kube-scheduler: to the best of those that are left. Where it is then, or "".
  std::string schedule(const Pod& pod) {
    const auto refusals = extender.refusals(pod, names, MonoTime{});
    const std::vector<int> scores = extender.scores(pod, names);
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (refusals.contains(names[i])) continue;
      if (!best || scores[i] > scores[*best]) best = i;
    }
    if (!best) return "";
    return bind(pod, names[*best]) ? names[*best] : "";
  }
  Result<Bind> bind(const Pod& pod, const std::string& node) {
    Bind given = GF_TRY(extender.give(pod, node));
    see(pod, given);
    return given;
  }
  /// The watch tells of it.
  void see(Pod pod, const Bind& given) {
    pod.node = given.node;
    pod.allocation = given.allocation;
    extender.put(std::move(pod));
  }

  const std::vector<std::string> names{"a", "b", "c"};
  Extender extender;
};

TEST_F(ExtenderTest, ToldOfEachRequestWhatANodeLacks) {
  ASSERT_TRUE(bind(pod_that_asks("whole", "3"), "a"));
  ASSERT_TRUE(bind(pod_that_asks("part", "0.5"), "b"));
  for (const auto& [gpu, told] : std::map<std::string, std::string>{
           {"", ""},
           {"0.5", ""},
           {"2(V100)", "a: Insufficient nvidia.com/gpu"},
           {"4", "a: Insufficient nvidia.com/gpu, b: Insufficient nvidia.com/gpu"},
           {"5",
            "a!: Insufficient nvidia.com/gpu, b!: Insufficient nvidia.com/gpu, c!: Insufficient "
            "nvidia.com/gpu"},
           {"1(A100)",
            "a!: node(s) had too few GPUs of the model, b!: node(s) had too few GPUs of the model, "
            "c!: node(s) had too few GPUs of the model"},
       }) {
    EXPECT_EQ(refused(pod_that_asks("asks", gpu)), told) << gpu;
  }
  const std::string mistake = refused(pod_that_asks("asks", "1.5"));
  EXPECT_TRUE(mistake.starts_with("a!: gflow/gpu: ")) << mistake;
}

TEST_F(ExtenderTest, PartsOfAGpuGoTogetherWhereWholeOnesAreAskedFor) {
  extender.put(pod_that_asks("waits", "3"));
  EXPECT_EQ(schedule(pod_that_asks("first", "0.5")), "a");
  EXPECT_EQ(schedule(pod_that_asks("second", "0.5")), "a")
      << "the rest of that GPU fits nobody better";
  EXPECT_EQ(refused(pod_that_asks("all", "4")), "a: Insufficient nvidia.com/gpu");
  EXPECT_EQ(refused(pod_that_asks("most", "3")), "") << "both are on one GPU";
}

TEST_F(ExtenderTest, WhatIsOnItsWayIsNobodyElses) {
  const auto given = extender.give(pod_that_asks("all", "4"), "a");
  ASSERT_TRUE(given);
  EXPECT_EQ(read_chosen(given->allocation)->devices.size(), 4U);
  EXPECT_EQ(refused(pod_that_asks("one", "1")), "a: Insufficient nvidia.com/gpu");
  extender.put(pod_that_asks("all", "4"));  // as a watch tells of a change of it that came before
  EXPECT_EQ(extender.give(pod_that_asks("one", "1"), "a").error().code, Code::Exhausted);
  EXPECT_EQ(extender.give(pod_that_asks("all", "4"), "b").error().code, Code::WrongState);
  extender.not_bound("all");
  EXPECT_EQ(refused(pod_that_asks("one", "1")), "");
  EXPECT_TRUE(extender.give(pod_that_asks("all", "4"), "b"));
  extender.pod_gone("all");
  extender.not_bound("all");
  EXPECT_EQ(refused(pod_that_asks("one", "1")), "");
}

TEST_F(ExtenderTest, PodsThatDoNotSayWhatTheyHaveHaveWhatTheyAskFor) {
  Pod counted = pod_that_asks("counted", "");
  counted.requests["nvidia.com/gpu"] = 3000;
  counted.node = "a";
  extender.put(counted);
  Pod noted_elsewhere = pod_that_asks("elsewhere", "2");
  noted_elsewhere.node = "b";
  noted_elsewhere.allocation = R"({"node":"c","devices":[]})";
  extender.put(noted_elsewhere);
  Pod lies = pod_that_asks("lies", "0.5");  // it was given all of it
  lies.node = "c";
  lies.allocation =
      R"({"node":"c","devices":[{"resource":"nvidia.com/gpu","index":1,"share_parts":10000}]})";
  extender.put(lies);
  EXPECT_EQ(refused(pod_that_asks("two", "2")), "a: Insufficient nvidia.com/gpu");
  EXPECT_EQ(refused(pod_that_asks("four", "4")).substr(0, 2), "a:");
  const auto given = extender.give(pod_that_asks("three", "2"), "c");
  ASSERT_TRUE(given);
  for (const Chosen& one : read_chosen(given->allocation)->devices) EXPECT_NE(one.index, 1);
}

TEST_F(ExtenderTest, WhatAPodWasGivenIsNoLessForWhatItsAnnotationSaysLater) {
  Pod pod = pod_that_asks("all", "4");
  const auto given = bind(pod, "a");
  ASSERT_TRUE(given);
  pod.node = "a";
  pod.allocation = R"({"node":"a","devices":[]})";
  extender.put(pod);
  EXPECT_EQ(refused(pod_that_asks("one", "1")), "a: Insufficient nvidia.com/gpu");
  pod.gpu = "1";  // of which it has more
  extender.put(pod);
  EXPECT_EQ(refused(pod_that_asks("one", "1")), "a: Insufficient nvidia.com/gpu");
}

TEST_F(ExtenderTest, PodsWithoutGpusGoAnywhere) {
  const Pod plain = pod_that_asks("plain", "");
  EXPECT_EQ(refused(plain), "");
  EXPECT_EQ(extender.scores(plain, names), (std::vector<int>{0, 0, 0}));
  const auto given = extender.give(plain, "nobody-told-of-it");
  ASSERT_TRUE(given);
  EXPECT_EQ(given->allocation, "");
}

TEST_F(ExtenderTest, NodesComeAndGo) {
  ASSERT_TRUE(bind(pod_that_asks("first", "2"), "a"));
  extender.node_gone("a");
  EXPECT_EQ(refused(pod_that_asks("one", "1")), "a: node(s) are not known to gflow-kube yet");
  EXPECT_EQ(extender.give(pod_that_asks("one", "1"), "a").error().code, Code::NotFound);
  extender.put(node_with("a", 2));  // with fewer GPUs, and the pod is there still
  EXPECT_EQ(refused(pod_that_asks("one", "1")), "a: Insufficient nvidia.com/gpu");
  extender.pod_gone("first");
  EXPECT_EQ(refused(pod_that_asks("two", "2")), "");
}

/// Room of which kube-scheduler was told before this: it asked too early, and would not ask again.
TEST_F(ExtenderTest, WhoAskedTooEarlyIsKnown) {
  ASSERT_TRUE(bind(pod_that_asks("a", "4"), "a"));
  ASSERT_TRUE(bind(pod_that_asks("b", "4"), "b"));
  ASSERT_TRUE(bind(pod_that_asks("c", "4"), "c"));
  const auto ask = [this](const std::string& name, const std::string& gpu, int seconds) {
    Pod pod = pod_that_asks(name, gpu);
    pod.created = WallTime(std::chrono::seconds(seconds));
    extender.put(pod);
    return extender.refusals(pod, names, MonoTime(std::chrono::seconds(seconds))).size();
  };
  const auto overlooked = [this](int seconds) {
    std::string text;
    for (const Pod& pod : extender.overlooked(MonoTime(std::chrono::seconds(seconds)))) {
      text += pod.name + " ";
    }
    return text;
  };
  ASSERT_EQ(ask("early", "1", 1), 3U);
  ASSERT_EQ(ask("later", "2", 8), 3U);
  ASSERT_EQ(ask("last", "1", 9), 3U);
  ASSERT_EQ(ask("never", "8", 9), 3U);
  ASSERT_EQ(ask("other", "1(A100)", 9), 3U);
  EXPECT_EQ(overlooked(10), "");
  extender.pod_gone("b");
  EXPECT_EQ(overlooked(10), "later last ") << "of early kube-scheduler knows better";
  EXPECT_EQ(overlooked(10), "") << "each once";
  ASSERT_EQ(ask("last", "1", 11), 2U) << "one has room";
  extender.pod_gone("a");
  EXPECT_EQ(overlooked(12), "");
}

/// Requests are whoever makes pods's: what is kept for each kind of them is bounded.
TEST_F(ExtenderTest, ManyKindsOfRequestsAreForgotten) {
  ASSERT_TRUE(bind(pod_that_asks("held", "4"), "a"));
  for (int i = 1; i < 3000; ++i) {
    const Pod pod = pod_that_asks(fmt::format("p{}", i), fmt::format("0.{:04}", i));
    ASSERT_EQ(refused(pod), "a: Insufficient nvidia.com/gpu") << i;
  }
}

/// Whatever comes and goes, no GPU is given out twice, and one that starts knows what the one
/// before it did.
TEST(ExtenderProperty, GivesNothingOutTwice) {
  const std::vector<std::string> names{"a", "b", "c"};
  const std::vector<std::string> requests{"1", "2", "4", "0.5", "0.25", "0.7", "1(V100)", "2x0.5"};
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    auto extender = std::make_unique<Extender>();
    for (const std::string& name : names) extender->put(node_with(name, kGpusThere));
    std::map<std::string, Pod> pods;
    std::map<std::string, Bind> under_way;
    const auto verify = [&] {
      std::map<std::string, std::int64_t> used;
      const auto use = [&](const std::string& allocation) {
        const auto chosen = read_chosen(allocation);
        ASSERT_TRUE(chosen) << allocation;
        for (const Chosen& one : chosen->devices) {
          auto& parts = used[fmt::format("{} {}", chosen->node, one.index)];
          parts += one.share.parts;
          ASSERT_LE(parts, Share::kWholeParts) << allocation;
        }
      };
      for (const auto& [uid, pod] : pods) {
        if (!pod.node.empty()) use(pod.allocation);
      }
      for (const auto& [uid, bind] : under_way) use(bind.allocation);
      // What is said to be free is: whole GPUs of a node, counted apart.
      for (const std::string& name : names) {
        int idle = 0;
        for (int i = 0; i < kGpusThere; ++i) idle += used[fmt::format("{} {}", name, i)] == 0;
        for (int gpus = 1; gpus <= kGpusThere; ++gpus) {
          const auto refusals = extender->refusals(
              pod_that_asks("probe", std::to_string(gpus)), std::vector{name}, MonoTime{});
          ASSERT_EQ(refusals.empty(), gpus <= idle) << name << " " << gpus << " seed " << seed;
        }
      }
    };
    for (int turn = 0; turn < 120; ++turn) {
      const auto any = [&](const auto& map) {
        return std::next(map.begin(), static_cast<long>(random() % map.size()))->first;
      };
      switch (random() % 8) {
        case 0:
        case 1:
        case 2: {
          Pod pod = pod_that_asks(fmt::format("p{}", turn), requests[random() % requests.size()]);
          pod.created = WallTime(std::chrono::seconds(turn));
          extender->put(pod);
          pods[pod.uid] = pod;
          const auto given = extender->give(pod, names[random() % names.size()]);
          if (given) under_way.emplace(pod.uid, *given);
          break;
        }
        case 3:
        case 4:
          if (under_way.empty()) break;
          {
            const std::string uid = any(under_way);
            Pod& pod = pods.at(uid);
            pod.node = under_way.at(uid).node;
            pod.allocation = under_way.at(uid).allocation;
            under_way.erase(uid);
            extender->put(pod);
          }
          break;
        case 5:
          if (under_way.empty()) break;
          {
            const std::string uid = any(under_way);
            under_way.erase(uid);
            extender->not_bound(uid);
          }
          break;
        case 6:
          if (pods.empty()) break;
          {
            const std::string uid = any(pods);
            pods.erase(uid);
            under_way.erase(uid);
            extender->pod_gone(uid);
          }
          break;
        default:
          if (!under_way.empty()) break;  // what was asked for would be forgotten
          extender = std::make_unique<Extender>();
          for (const std::string& name : names) extender->put(node_with(name, kGpusThere));
          for (const auto& [uid, pod] : pods) extender->put(pod);
      }
      verify();
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(ExtenderTest, AnswersAsItWasAsked) {
  ASSERT_TRUE(bind(pod_that_asks("all", "4"), "a"));
  const nlohmann::json pod = {{"metadata",
                               {{"name", "p"},
                                {"namespace", "default"},
                                {"uid", "p"},
                                {"annotations", {{"gflow/gpu", "1"}}}}},
                              {"spec", {{"containers", nlohmann::json::array()}}}};
  const nlohmann::json by_name = {
      {"Pod", pod}, {"Nodes", nullptr}, {"NodeNames", {"a", "b", "gone"}}};
  const auto named = nlohmann::json::parse(*filter(extender, by_name.dump(), {}));
  EXPECT_EQ(named.at("NodeNames"), nlohmann::json({"b"}));
  EXPECT_FALSE(named.contains("Nodes"));
  EXPECT_EQ(named.at("FailedNodes").at("a"), "Insufficient nvidia.com/gpu");
  EXPECT_TRUE(named.at("FailedNodes").contains("gone"));
  EXPECT_EQ(named.at("Error"), "");

  nlohmann::json items = nlohmann::json::array();
  for (const char* name : {"a", "c"}) {
    items.push_back({{"metadata", {{"name", name}, {"labels", {{"kept", "as sent"}}}}}});
  }
  const nlohmann::json whole = {
      {"Pod", pod}, {"Nodes", {{"items", items}}}, {"NodeNames", nullptr}};
  const auto sent = nlohmann::json::parse(*filter(extender, whole.dump(), {}));
  EXPECT_EQ(sent.at("Nodes").at("items"), nlohmann::json::array({items[1]}));
  const auto scores = nlohmann::json::parse(*prioritize(extender, by_name.dump()));
  EXPECT_EQ(scores,
            nlohmann::json::parse(
                R"([{"Host":"a","Score":0},{"Host":"b","Score":10},{"Host":"gone","Score":0}])"));
}

TEST_F(ExtenderTest, WhatIsNoQuestionIsRefused) {
  for (const char* asked : {"",
                            "[]",
                            "null",
                            "{",
                            R"({"Pod":null,"NodeNames":["a"]})",
                            R"({"Pod":{"metadata":{"name":"p"}},"NodeNames":["a"]})",
                            R"({"Pod":{"metadata":{"uid":"p"}}})",
                            R"({"Pod":{"metadata":{"uid":"p"}},"NodeNames":[1]})",
                            R"({"Pod":{"metadata":{"uid":"p"}},"Nodes":{"items":5}})"}) {
    EXPECT_EQ(filter(extender, asked, {}).error().code, Code::Usage) << asked;
    EXPECT_EQ(prioritize(extender, asked).error().code, Code::Usage) << asked;
  }
  for (const char* asked :
       {"", "{}", "[]", R"({"PodName":"p","PodNamespace":"n","PodUID":"u","Node":5})"}) {
    EXPECT_EQ(bind_wish_of(asked).error().code, Code::Usage) << asked;
  }
  const std::string odd =
      R"({"Pod":{"metadata":{"uid":"p","name":"\ud800"}},"NodeNames":["\u0000"]})";
  (void)filter(extender, odd, {});
}

}  // namespace
}  // namespace gflow::kube
