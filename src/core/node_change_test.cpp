// SPDX-License-Identifier: Apache-2.0
#include "core/node_change.h"

#include <gtest/gtest.h>

namespace gflow {
namespace {

using What = NodeChange::What;
using Changes = std::vector<NodeChange>;

TEST(NodeChanges, AreTheDifferenceOfTwoLooks) {
  NodeChanges changes;
  NodeStandings nodes = {{"a", {}}, {"b", {}}};
  EXPECT_EQ(changes.see(nodes), Changes{}) << "nothing of the first look is new";
  EXPECT_EQ(changes.see(nodes), Changes{});
  nodes["a"].drains = {{"a", {}, "fan", "root"}, {"a", 1, "loud", "alice", "GPU-1"}};
  EXPECT_EQ(changes.see(nodes),
            (Changes{{"a", What::Drained, {}, "fan", "root"},
                     {"a", What::Drained, 1, "loud", "alice", "GPU-1"}}));
  nodes["a"].drains = {{"a", 3, "louder", "alice", "GPU-1"}};  // its index is another one now
  EXPECT_EQ(changes.see(nodes), (Changes{{"a", What::Resumed}}));
  nodes["a"].drains.clear();
  EXPECT_EQ(changes.see(nodes), (Changes{{"a", What::Resumed, 3, "", "", "GPU-1"}}));
  nodes["a"].drains = {{"a", {}, "hot", "root", "GPU-2"}};  // one that is cut
  EXPECT_EQ(changes.see(nodes), (Changes{{"a", What::Drained, {}, "hot", "root", "GPU-2"}}));
  nodes["a"].drains.push_back({"a", {}, "fan", "root"});
  EXPECT_EQ(changes.see(nodes), (Changes{{"a", What::Drained, {}, "fan", "root"}}));
  nodes["a"].drains.clear();
  EXPECT_EQ(changes.see(nodes),
            (Changes{{"a", What::Resumed, {}, "", "", "GPU-2"}, {"a", What::Resumed}}));
  nodes["b"] = {"no route", {}, "disk is full"};
  EXPECT_EQ(changes.see(nodes),
            (Changes{{"b", What::Unreachable, {}, "no route"},
                     {"b", What::Unhealthy, {}, "disk is full"}}));
  nodes["b"] = {};
  EXPECT_EQ(changes.see(nodes), (Changes{{"b", What::Answers}, {"b", What::Healthy}}));
  nodes.erase("b");
  nodes["c"].unreachable = "no route";
  EXPECT_EQ(
      changes.see(nodes),
      (Changes{
          {"b", What::Gone}, {"c", What::Appeared}, {"c", What::Unreachable, {}, "no route"}}));
  EXPECT_EQ(node_change_name(What::Healthy), "healthy");
}

}  // namespace
}  // namespace gflow
