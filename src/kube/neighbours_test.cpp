// SPDX-License-Identifier: Apache-2.0
#include "kube/neighbours.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/text.h"
#include "kube/neighbours_test.h"

namespace gflow::kube {
namespace {

using Json = nlohmann::json;

/// Two nodes of zone a, one each of b and c, of which the last is tainted, and one of no zone.
std::deque<Node> some_nodes() {
  std::deque<Node> nodes;
  for (const char* name : {"a1", "a2", "b1", "c1", "x1"}) {
    Node node;
    node.name = name;
    node.labels = {{"host", name}, {"zone", std::string(1, name[0])}};
    if (node.name == "x1") node.labels.erase("zone");
    if (node.name == "c1") node.taints = {{"team", "vision", "NoSchedule"}};
    nodes.push_back(node);
  }
  return nodes;
}

/// "team/web@a1": a pod of the namespace team with the label app=web on the node a1. "web" is one
/// of the namespace default on none, "web-" is one that is being deleted.
Json pod_like(std::string text, const Json& spec = Json::object()) {
  Json pod = {{"metadata", {{"namespace", "default"}}}, {"spec", spec}};
  if (const auto at = text.find('@'); at != std::string::npos) {
    pod["spec"]["nodeName"] = text.substr(at + 1);
    text.resize(at);
  }
  if (const auto at = text.find('/'); at != std::string::npos) {
    pod["metadata"]["namespace"] = text.substr(0, at);
    text.erase(0, at + 1);
  }
  if (text.ends_with('-')) {
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
    text.pop_back();
  }
  pod["metadata"]["labels"] = {{"app", text}};
  return pod;
}

struct There {
  std::deque<Node> nodes = some_nodes();
  std::deque<Pod> pods;
  std::map<std::string, Words> name_spaces = {{"default", {}}, {"team", {{"of", "vision"}}}};

  /// As letters, node by node: "." is where the pod may go, else what of it does not let it.
  [[nodiscard]] std::string judge(const Pod& pod) const {
    std::set<std::string> changed;
    Neighbours neighbours(changed);
    for (const Node& node : nodes) neighbours.enter(node);
    for (const Pod& one : pods) {
      neighbours.know(one);
      neighbours.add(one, one.node);
    }
    for (const auto& [name, labels] : name_spaces) neighbours.put(NameSpace{name, name, labels});
    neighbours.know_name_spaces();
    const Bonds bonds = neighbours.bonds_of(pod);
    neighbours.watch(1, bonds, pod.wishes);
    EXPECT_EQ(neighbours.check(), "");
    std::string letters;
    for (const Node& node : nodes) letters += letter(neighbours.refusal(1, node));
    return letters;
  }
  [[nodiscard]] std::string ask_oracle(const Pod& pod) const {
    oracle::There there{{}, {}, name_spaces};
    for (const Node& node : nodes) there.nodes.push_back(&node);
    for (const Pod& one : pods) {
      const auto at = std::ranges::find(nodes, one.node, &Node::name);
      if (at != nodes.end()) there.pods.push_back({&one, &*at});
    }
    std::string letters;
    for (const Node& node : nodes) {
      const std::string refusal = oracle::refusal(pod, node, there);
      letters += refusal.empty() ? '.' : refusal.front();
    }
    return letters;
  }

 private:
  static char letter(const std::string& refusal) {
    const std::map<std::string, char> letters = {
        {"", '.'},
        {"node(s) didn't match pod affinity rules", 'n'},
        {"node(s) didn't match pod anti-affinity rules", 'a'},
        {"node(s) didn't satisfy existing pods anti-affinity rules", 'o'},
        {"node(s) didn't match pod topology spread constraints", 's'},
        {"node(s) didn't match pod topology spread constraints (missing required label)", 'k'}};
    const auto at = letters.find(refusal);
    EXPECT_NE(at, letters.end()) << refusal;
    return at == letters.end() ? '?' : at->second;
  }
};

/// A term of pods with app=NAME, with more of it as JSON.
Json term(const char* key, const char* name, const char* more = "{}") {
  Json made = {{"topologyKey", key}, {"labelSelector", {{"matchLabels", {{"app", name}}}}}};
  made.update(Json::parse(more));
  return made;
}
Json terms(const char* kind, std::initializer_list<Json> all) {
  return {{"affinity",
           {{kind, {{"requiredDuringSchedulingIgnoredDuringExecution", Json::array_t(all)}}}}}};
}
Json near(std::initializer_list<Json> all) { return terms("podAffinity", all); }
Json apart(std::initializer_list<Json> all) { return terms("podAntiAffinity", all); }
Json spread(std::initializer_list<Json> all) {
  Json spec = {{"topologySpreadConstraints", Json::array_t(all)}};
  for (Json& one : spec["topologySpreadConstraints"]) {
    if (!one.contains("maxSkew")) one["maxSkew"] = 1;
  }
  return spec;
}

struct Case {
  const char* what;
  std::vector<std::string> pods;
  std::string asks;
  Json spec;
  std::string verdict;  ///< of a1, a2, b1, c1, x1
};

void verify(const std::vector<Case>& cases) {
  for (const Case& each : cases) {
    There there;
    for (const std::string& one : each.pods) there.pods.push_back(pod_of(pod_like(one)));
    const Pod pod = pod_of(pod_like(each.asks, each.spec));
    EXPECT_EQ(there.judge(pod), each.verdict) << each.what;
    EXPECT_EQ(there.ask_oracle(pod), each.verdict) << each.what;
  }
}

TEST(Neighbours, WhoWantsToBeNearOthersGoesToTheirDomain) {
  verify({
      {"nobody is there", {}, "web", near({term("zone", "db")}), "nnnnn"},
      {"one is in the zone", {"db@a1"}, "web", near({term("zone", "db")}), "..nnn"},
      {"one is on the node", {"db@a1"}, "web", near({term("host", "db")}), ".nnnn"},
      {"one on a node without the key is nowhere",
       {"db@x1"},
       "web",
       near({term("zone", "db")}),
       "nnnnn"},
      {"one on a node that is not there", {"db@gone"}, "web", near({term("zone", "db")}), "nnnnn"},
      {"one that is being deleted is there yet",
       {"db-@b1"},
       "web",
       near({term("zone", "db")}),
       "nn.nn"},
      {"the first of a set of its own", {}, "db", near({term("zone", "db")}), "....n"},
      {"the second goes to it", {"db@c1"}, "db", near({term("zone", "db")}), "nnn.n"},
      {"one that is in no domain is none", {"db@x1"}, "db", near({term("zone", "db")}), "....n"},
      {"the first, but of another namespace",
       {},
       "db",
       near({term("zone", "db", R"({"namespaces": ["team"]})")}),
       "nnnnn"},
      {"both terms, which two pods meet",
       {"db@a1", "team/db@a2"},
       "web",
       near({term("zone", "db"), term("zone", "db", R"({"namespaces": ["team"]})")}),
       "nnnnn"},
      {"both terms, which one pod meets",
       {"db@a1"},
       "web",
       near({term("zone", "db"), term("host", "db")}),
       ".nnnn"},
      {"one of two keys has one, so that it is not the first",
       {"db@x1"},
       "db",
       near({term("zone", "db"), term("host", "db")}),
       "nnnnn"},
      {"without a selector nobody is meant",
       {"db@a1"},
       "web",
       near({{{"topologyKey", "zone"}}}),
       "nnnnn"},
      {"an empty selector means all",
       {"db@a1"},
       "web",
       near({{{"topologyKey", "zone"}, {"labelSelector", Json::object()}}}),
       "..nnn"},
  });
}

TEST(Neighbours, WhoWantsToBeApartGoesToOtherDomains) {
  verify({
      {"nobody is there", {}, "web", apart({term("zone", "db")}), "....."},
      {"the zone is taken, a node of none is not",
       {"db@a1"},
       "web",
       apart({term("zone", "db")}),
       "aa..."},
      {"one that it would itself keep away", {}, "db", apart({term("zone", "db")}), "....."},
      {"a second of those", {"db@b1"}, "db", apart({term("zone", "db")}), "..a.."},
      {"one that is being deleted is there yet",
       {"db-@b1"},
       "db",
       apart({term("zone", "db")}),
       "..a.."},
      {"one of another namespace is not meant",
       {"team/db@a1"},
       "web",
       apart({term("zone", "db")}),
       "....."},
      {"that namespace",
       {"team/db@a1"},
       "web",
       apart({term("zone", "db", R"({"namespaces": ["team"]})")}),
       "aa..."},
      {"not the own one then",
       {"db@a1"},
       "web",
       apart({term("zone", "db", R"({"namespaces": ["team"]})")}),
       "....."},
      {"namespaces by a label",
       {"team/db@a1", "db@b1"},
       "web",
       apart({term("zone", "db", R"({"namespaceSelector": {"matchLabels": {"of": "vision"}}})")}),
       "aa..."},
      {"all namespaces",
       {"team/db@a1", "db@b1"},
       "web",
       apart({term("zone", "db", R"({"namespaceSelector": {}})")}),
       "aaa.."},
      {"by a label and by name",
       {"team/db@a1", "db@b1"},
       "web",
       apart({term(
           "zone",
           "db",
           R"({"namespaces": ["default"], "namespaceSelector": {"matchLabels": {"of": "vision"}}})")}),
       "aaa.."},
      {"either term does",
       {"db@a1", "web@c1"},
       "job",
       apart({term("host", "db"), term("zone", "web")}),
       "a..a."},
      {"keys that are merged by the API server are not read again",
       {"db@a1"},
       "web",
       apart({term("zone", "db", R"({"matchLabelKeys": ["app"]})")}),
       "aa..."},
  });
}

TEST(Neighbours, WhatRunsKeepsOthersApart) {
  struct Rule {
    const char* what;
    const char* holder;
    Json spec;
    std::string asks;
    std::string verdict;
  };
  const std::vector<Rule> cases = {
      {"it is meant", "db@a1", apart({term("zone", "web")}), "web", "oo..."},
      {"it is not", "db@a1", apart({term("zone", "web")}), "job", "....."},
      {"on the node alone", "db@a2", apart({term("host", "web")}), "web", ".o..."},
      {"not of the holder's namespace", "team/db@a1", apart({term("zone", "web")}), "web", "....."},
      {"of a namespace that the holder names",
       "team/db@a1",
       apart({term("zone", "web", R"({"namespaces": ["default"]})")}),
       "web",
       "oo..."},
      {"of one with a label",
       "db@a1",
       apart({term("zone", "web", R"({"namespaceSelector": {"matchLabels": {"of": "vision"}}})")}),
       "team/web",
       "oo..."},
      {"of one without it",
       "db@a1",
       apart({term("zone", "web", R"({"namespaceSelector": {"matchLabels": {"of": "vision"}}})")}),
       "web",
       "....."},
      {"the holder is being deleted", "db-@b1", apart({term("zone", "web")}), "web", "..o.."},
      {"the holder's node has no zone", "db@x1", apart({term("zone", "web")}), "web", "....."},
      {"affinity keeps nobody away", "db@a1", near({term("zone", "web")}), "web", "....."}};
  for (const Rule& each : cases) {
    There there;
    there.pods.push_back(pod_of(pod_like(each.holder, each.spec)));
    const Pod pod = pod_of(pod_like(each.asks));
    EXPECT_EQ(there.judge(pod), each.verdict) << each.what;
    EXPECT_EQ(there.ask_oracle(pod), each.verdict) << each.what;
  }
}

TEST(Neighbours, PodsAreSpread) {
  const auto tolerant = [](Json spec) {
    spec["tolerations"] = Json::array_t{{{"operator", "Exists"}}};
    return spec;
  };
  const auto in_zone_a = [](Json spec) {
    spec["nodeSelector"] = {{"zone", "a"}};
    return spec;
  };
  verify({
      {"nobody is there", {}, "web", spread({term("zone", "web")}), "....k"},
      {"one zone is ahead", {"web@a1"}, "web", spread({term("zone", "web")}), "ss..k"},
      {"it may be so much ahead",
       {"web@a1"},
       "web",
       spread({term("zone", "web", R"({"maxSkew": 2})")}),
       "....k"},
      {"it does not count itself", {"db@a1"}, "web", spread({term("zone", "db")}), "....k"},
      {"all zones have one",
       {"web@a1", "web@b1", "web@c1"},
       "web",
       spread({term("zone", "web")}),
       "....k"},
      {"one that is being deleted does not count",
       {"web-@a1"},
       "web",
       spread({term("zone", "web")}),
       "....k"},
      {"nor one of another namespace",
       {"team/web@a1"},
       "web",
       spread({term("zone", "web")}),
       "....k"},
      {"nor one on a node of no zone", {"web@x1"}, "web", spread({term("zone", "web")}), "....k"},
      {"three zones are no four: the fewest are none",
       {"web@a1", "web@b1", "web@c1"},
       "web",
       spread({term("zone", "web", R"({"minDomains": 4})")}),
       "ssssk"},
      {"three are three",
       {"web@a1", "web@b1", "web@c1"},
       "web",
       spread({term("zone", "web", R"({"minDomains": 3})")}),
       "....k"},
      {"zones that it does not ask for do not count",
       {"web@a1"},
       "web",
       in_zone_a(spread({term("zone", "web")})),
       "....k"},
      {"they do if it says so",
       {"web@a1"},
       "web",
       in_zone_a(spread({term("zone", "web", R"({"nodeAffinityPolicy": "Ignore"})")})),
       "ss..k"},
      {"nodes that it does not tolerate count",
       {"web@a1", "web@b1"},
       "web",
       spread({term("zone", "web")}),
       "sss.k"},
      {"they do not if it says so",
       {"web@a1", "web@b1"},
       "web",
       spread({term("zone", "web", R"({"nodeTaintsPolicy": "Honor"})")}),
       "....k"},
      {"but if it tolerates them",
       {"web@a1", "web@b1"},
       "web",
       tolerant(spread({term("zone", "web", R"({"nodeTaintsPolicy": "Honor"})")})),
       "sss.k"},
      {"a node counts that has all keys",
       {"web@x1", "web@a1"},
       "web",
       spread({term("host", "web"), term("zone", "web")}),
       "ss..k"},
      {"a wish is none",
       {"web@a1"},
       "web",
       spread({term("zone", "web", R"({"whenUnsatisfiable": "ScheduleAnyway"})")}),
       "....."},
      {"without a selector nobody counts",
       {"web@a1"},
       "web",
       spread({{{"topologyKey", "zone"}}}),
       "....k"},
      {"nor with an empty one, as kube-scheduler has it",
       {"web@a1", "web@a2"},
       "web",
       spread({{{"topologyKey", "zone"}, {"labelSelector", Json::object()}}}),
       "....k"},
      {"those with its value of a key",
       {"web@a1", "db@b1"},
       "web",
       spread({{{"topologyKey", "zone"},
                {"labelSelector", Json::object()},
                {"matchLabelKeys", {"app", "none"}}}}),
       "ss..k"},
  });
}

TEST(Neighbours, WithoutLabelsOfNamespacesWhoGoesByThemWaitsAndNobodyIsPutTooNear) {
  std::set<std::string> changed;
  Neighbours neighbours(changed);
  const std::deque<Node> nodes = some_nodes();
  for (const Node& node : nodes) neighbours.enter(node);
  const Json of_vision =
      apart({term("zone", "web", R"({"namespaceSelector": {"matchLabels": {"of": "vision"}}})")});
  const Pod holder = pod_of(pod_like("db@a1", of_vision));
  neighbours.know(holder);
  neighbours.add(holder, "a1");
  const Pod plain = pod_of(pod_like("web"));
  Bonds bonds = neighbours.bonds_of(plain);
  neighbours.watch(1, bonds, plain.wishes);
  EXPECT_NE(neighbours.refusal(1, nodes[0]), "") << "it might be meant";
  EXPECT_EQ(neighbours.refusal(1, nodes[2]), "");
  const Pod asks = pod_of(pod_like("db", of_vision));
  const Bonds asking = neighbours.bonds_of(asks);
  neighbours.watch(2, asking, asks.wishes);
  EXPECT_EQ(neighbours.refusal(2, nodes[2]),
            "node(s) were not judged, as labels of namespaces cannot be read");
  (void)neighbours.take_news();
  changed.clear();
  neighbours.put(NameSpace{"1", "default", {}});
  neighbours.know_name_spaces();
  EXPECT_EQ(neighbours.refusal(2, nodes[2]), "");
  EXPECT_EQ(changed.size(), nodes.size());
  EXPECT_TRUE(neighbours.take_news());
  EXPECT_TRUE(neighbours.bonds_of(plain).empty());
}

/// Of what the rules of some pods do not hang on, nothing is looked at.
TEST(Neighbours, OnlyNodesAreTouchedWhoseAnswerMayBeAnother) {
  std::set<std::string> changed;
  Neighbours neighbours(changed);
  const std::deque<Node> nodes = some_nodes();
  for (const Node& node : nodes) neighbours.enter(node);
  std::deque<Pod> pods;
  std::deque<Bonds> all;
  const auto watch = [&](int id, const Json& spec) {
    pods.push_back(pod_of(pod_like("web", spec)));
    all.push_back(neighbours.bonds_of(pods.back()));
    neighbours.watch(id, all.back(), pods.back().wishes);
  };
  const auto touched_by = [&](const char* text) {
    changed.clear();
    pods.push_back(pod_of(pod_like(text)));
    neighbours.add(pods.back(), pods.back().node);
    std::string names;
    for (const std::string& name : changed) names += names.empty() ? name : " " + name;
    return names;
  };
  watch(1, Json::object());
  EXPECT_EQ(touched_by("db@a1"), "");
  watch(2, apart({term("zone", "log")}));
  EXPECT_EQ(touched_by("db@a1"), "");
  EXPECT_EQ(touched_by("log@a1"), "a1 a2");
  EXPECT_EQ(touched_by("log@a1"), "") << "it has been so already";
  watch(3, spread({term("zone", "web", R"({"maxSkew": 2})")}));
  EXPECT_EQ(touched_by("web@b1"), "") << "one more may go there";
  EXPECT_EQ(touched_by("web@b1"), "b1");
  EXPECT_EQ(touched_by("web@a1"), "");
  EXPECT_EQ(touched_by("web@c1"), "b1") << "the fewest are more";
}

}  // namespace
}  // namespace gflow::kube
