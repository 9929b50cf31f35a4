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
  /// "a: why" of each that cannot have it.
  std::string refused(const Pod& pod) {
    std::string text;
    for (const auto& [node, refusal] : extender.refusals(pod, names, MonoTime{})) {
      text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", node, refusal.why);
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
    extender.meet(pod, {});
    Bind given = GF_TRY(extender.reserve(pod.uid, node, {}));
    see(pod, given);
    return given;
  }
  Result<Bind> reserve(const Pod& pod, const std::string& node) {
    extender.meet(pod, {});
    return extender.reserve(pod.uid, node, {});
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
            "a: Insufficient nvidia.com/gpu, b: Insufficient nvidia.com/gpu, c: Insufficient "
            "nvidia.com/gpu"},
           {"1(A100)",
            "a: node(s) had too few GPUs of the model, b: node(s) had too few GPUs of the model, "
            "c: node(s) had too few GPUs of the model"},
       }) {
    EXPECT_EQ(refused(pod_that_asks("asks", gpu)), told) << gpu;
  }
  const std::string mistake = refused(pod_that_asks("asks", "1.5"));
  EXPECT_TRUE(mistake.starts_with("a: gflow/gpu: ")) << mistake;
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
  const auto given = reserve(pod_that_asks("all", "4"), "a");
  ASSERT_TRUE(given);
  EXPECT_EQ(read_chosen(given->allocation)->devices.size(), 4U);
  EXPECT_EQ(refused(pod_that_asks("one", "1")), "a: Insufficient nvidia.com/gpu");
  extender.put(pod_that_asks("all", "4"));  // as a watch tells of a change of it that came before
  EXPECT_EQ(reserve(pod_that_asks("one", "1"), "a").error().code, Code::Exhausted);
  EXPECT_EQ(reserve(pod_that_asks("all", "4"), "b").error().code, Code::WrongState);
  extender.not_bound("all");
  EXPECT_EQ(refused(pod_that_asks("one", "1")), "");
  EXPECT_TRUE(reserve(pod_that_asks("all", "4"), "b"));
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
  const auto given = reserve(pod_that_asks("three", "2"), "c");
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
  const auto given = reserve(plain, "nobody-told-of-it");
  ASSERT_TRUE(given);
  EXPECT_EQ(given->allocation, "");
}

TEST_F(ExtenderTest, NodesComeAndGo) {
  ASSERT_TRUE(bind(pod_that_asks("first", "2"), "a"));
  extender.node_gone("a");
  EXPECT_EQ(refused(pod_that_asks("one", "1")), "a: node(s) are not known to gflow-kube yet");
  EXPECT_EQ(reserve(pod_that_asks("one", "1"), "a").error().code, Code::NotFound);
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
  ASSERT_EQ(ask("later", "2", 38), 3U);
  ASSERT_EQ(ask("last", "1", 39), 3U);
  ASSERT_EQ(ask("large", "8", 39), 3U);
  ASSERT_EQ(ask("other", "1(A100)", 39), 3U);
  EXPECT_EQ(overlooked(40), "");
  extender.pod_gone("b");
  EXPECT_EQ(overlooked(40), "later last ") << "early was asked for long ago";
  EXPECT_EQ(overlooked(40), "") << "each once";
  ASSERT_EQ(ask("last", "1", 41), 2U) << "one has room";
  extender.put(node_with("a", 8));  // as its device plugin says by now
  extender.pod_gone("a");
  EXPECT_EQ(overlooked(42), "large ");
  // Of the nodes that it was asked about, and of no other.
  Pod picky = pod_that_asks("picky", "1");
  extender.put(picky);
  ASSERT_EQ(extender.refusals(picky, std::vector<std::string>{"c"}, {}).size(), 1U);
  Pod none = pod_that_asks("none", "1");
  extender.put(none);
  ASSERT_EQ(extender.refusals(none, std::vector<std::string>{"new"}, {}).size(), 1U);
  extender.put(node_with("b", 8));
  EXPECT_EQ(overlooked(0), "none ") << "of a node that was not known it may have been this one";
  extender.pod_gone("c");
  EXPECT_EQ(overlooked(0), "picky ");
}

/// Requests are whoever makes pods's: what is kept for each kind of them is bounded, and those in
/// use are not looked at again and again.
TEST_F(ExtenderTest, ManyKindsOfRequestsAreForgotten) {
  ASSERT_TRUE(bind(pod_that_asks("held", "4"), "a"));
  const auto ask = [this](int number) {
    const Pod pod = pod_that_asks(fmt::format("p{}", number), fmt::format("0.{:04}", number));
    EXPECT_EQ(refused(pod), "a: Insufficient nvidia.com/gpu") << number;
    return pod;
  };
  for (int i = 1; i < 3000; ++i) (void)ask(i);
  EXPECT_LE(extender.kinds(), 1026U);
  for (int i = 1; i < 3000; ++i) extender.put(ask(i));
  const std::size_t all = extender.kinds();
  EXPECT_GE(all, 3000U);
  for (int i = 1; i < 3000; ++i) {
    (void)ask(i);
    ASSERT_GE(extender.kinds(), all) << "it began anew";
  }
}

TEST_F(ExtenderTest, WhoDoesNotAskForGpusHasNone) {
  Pod plain = pod_that_asks("plain", "");
  plain.node = "a";
  plain.allocation =
      R"({"node":"a","devices":[{"resource":"nvidia.com/gpu","index":1,"share_parts":10000}]})";
  extender.put(plain);
  EXPECT_EQ(refused(pod_that_asks("all", "4")), "");
  Pod of_gang = pod_that_asks("gang", "");
  of_gang.gang_mistake = "what gflow-kube would say of it";
  EXPECT_EQ(refused(of_gang), "");
  of_gang.gpu = "1";
  EXPECT_EQ(refused(of_gang), "") << "kube-scheduler has them start alone";
}

/// Of two pods that say they have the same, one has another.
TEST_F(ExtenderTest, WhatIsSaidWronglyIsCountedOnce) {
  constexpr const char* kFirst =
      R"({"node":"a","devices":[{"resource":"nvidia.com/gpu","index":0,"share_parts":10000}]})";
  for (const char* name : {"one", "two"}) {
    Pod pod = pod_that_asks(name, "1");
    pod.node = "a";
    pod.allocation = kFirst;
    extender.put(pod);
  }
  EXPECT_EQ(refused(pod_that_asks("probe", "2")), "");
  EXPECT_EQ(refused(pod_that_asks("probe", "3")), "a: Insufficient nvidia.com/gpu");
  Pod more = pod_that_asks("more", "2");  // than it was given
  more.node = "b";
  more.allocation =
      R"({"node":"b","devices":[{"resource":"nvidia.com/gpu","index":0,"share_parts":10000}]})";
  extender.put(more);
  EXPECT_EQ(refused(pod_that_asks("probe", "2")), "");
}

TEST_F(ExtenderTest, WhoNoWatchTellsOfIsAskedAbout) {
  const auto asked = [this](int seconds) {
    return extender.unconfirmed(MonoTime(std::chrono::seconds(seconds))).size();
  };
  extender.meet(pod_that_asks("met", "1"), MonoTime{});
  extender.meet(pod_that_asks("seen", "1"), MonoTime{});
  extender.put(pod_that_asks("seen", "1"));
  EXPECT_EQ(asked(9), 0U);
  EXPECT_EQ(asked(10), 1U);
  EXPECT_EQ(asked(11), 0U);
  EXPECT_EQ(asked(20), 1U);
  extender.pod_gone("met");
  EXPECT_EQ(asked(500), 0U);
}

/// A few nodes, and pods that come, are bound, are not, and go, in any order. What they have is
/// counted apart.
class Coming {
 public:
  explicit Coming(unsigned seed) : random_(seed) { begin(); }

  void turn(int number) {
    const std::size_t what = random_() % 8;
    if (what < 3) return come(number);
    if (what < 5) return see();
    if (what == 5) return refuse();
    if (what == 6) return go();
    if (under_way_.empty()) begin();  // else what was asked for would be forgotten
  }

  /// What is free is said to be, and nothing else.
  void verify() {
    std::map<std::string, std::int32_t> used;
    for (const auto& [uid, pod] : pods_) {
      if (!pod.node.empty()) use(pod.allocation, used);
    }
    for (const auto& [uid, bind] : under_way_) use(bind.allocation, used);
    for (const auto& [device, parts] : used) ASSERT_LE(parts, Share::kWholeParts) << device;
    for (const std::string& name : names_) {
      int idle = 0;
      for (int i = 0; i < kGpusThere; ++i) idle += used[fmt::format("{} {}", name, i)] == 0 ? 1 : 0;
      for (int gpus = 1; gpus <= kGpusThere; ++gpus) {
        const Pod probe = pod_that_asks("probe", std::to_string(gpus));
        const bool is_refused = !extender_->refusals(probe, std::vector{name}, MonoTime{}).empty();
        ASSERT_EQ(is_refused, gpus > idle) << name << " " << gpus;
      }
    }
  }

 private:
  static void use(const std::string& allocation, std::map<std::string, std::int32_t>& used) {
    const auto chosen = read_chosen(allocation);
    ASSERT_TRUE(chosen) << allocation;
    for (const Chosen& one : chosen->devices) {
      used[fmt::format("{} {}", chosen->node, one.index)] += one.share.parts;
    }
  }
  /// One that knows what the cluster says.
  void begin() {
    extender_ = std::make_unique<Extender>();
    for (const std::string& name : names_) extender_->put(node_with(name, kGpusThere));
    for (const auto& [uid, pod] : pods_) extender_->put(pod);
  }
  void come(int number) {
    Pod pod = pod_that_asks(fmt::format("p{}", number), requests_[random_() % requests_.size()]);
    pod.created = WallTime(std::chrono::seconds(number));
    extender_->put(pod);
    pods_[pod.uid] = pod;
    const auto given = extender_->reserve(pod.uid, names_[random_() % names_.size()], MonoTime{});
    if (given) under_way_.emplace(pod.uid, *given);
  }
  void see() {
    if (under_way_.empty()) return;
    const std::string uid = any(under_way_);
    Pod& pod = pods_.at(uid);
    pod.node = under_way_.at(uid).node;
    pod.allocation = under_way_.at(uid).allocation;
    under_way_.erase(uid);
    extender_->put(pod);
  }
  void refuse() {
    if (under_way_.empty()) return;
    const std::string uid = any(under_way_);
    under_way_.erase(uid);
    extender_->not_bound(uid);
  }
  void go() {
    if (pods_.empty()) return;
    const std::string uid = any(pods_);
    pods_.erase(uid);
    under_way_.erase(uid);
    extender_->pod_gone(uid);
  }
  template <typename Map>
  [[nodiscard]] std::string any(const Map& map) {
    return std::next(map.begin(), static_cast<long>(random_() % map.size()))->first;
  }

  std::mt19937 random_;
  const std::vector<std::string> names_{"a", "b", "c"};
  const std::vector<std::string> requests_{"1", "2", "4", "0.5", "0.25", "0.7", "1(V100)", "2x0.5"};
  std::unique_ptr<Extender> extender_;
  std::map<std::string, Pod> pods_;
  std::map<std::string, Bind> under_way_;
};

/// Whatever comes and goes, no GPU is given out twice, and one that starts knows what the one
/// before it did.
TEST(ExtenderProperty, GivesNothingOutTwice) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    Coming coming(seed);
    for (int number = 0; number < 120; ++number) {
      coming.turn(number);
      coming.verify();
      if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << ", turn " << number;
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
  const auto& never = named.at("FailedAndUnresolvableNodes");
  EXPECT_EQ(never.at("a"), "Insufficient nvidia.com/gpu") << "kube-scheduler knows nobody to evict";
  EXPECT_TRUE(never.contains("gone"));
  EXPECT_TRUE(named.at("FailedNodes").empty());
  EXPECT_EQ(named.at("Error"), "");

  nlohmann::json counted = by_name;
  counted["Pod"]["metadata"] = {{"name", "q"}, {"namespace", "default"}, {"uid", "q"}};
  counted["Pod"]["spec"]["containers"] = {{{"resources", {{"limits", {{"nvidia.com/gpu", "1"}}}}}}};
  const auto by_count = nlohmann::json::parse(*filter(extender, counted.dump(), {}));
  EXPECT_EQ(by_count.at("FailedNodes").at("a"), "Insufficient nvidia.com/gpu");
  counted["Pod"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "5";
  const auto too_many = nlohmann::json::parse(*filter(extender, counted.dump(), {}));
  EXPECT_TRUE(too_many.at("FailedNodes").empty()) << "whoever is evicted";

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
    EXPECT_EQ(binding_args_of(asked).error().code, Code::Usage) << asked;
  }
}

}  // namespace
}  // namespace gflow::kube
