// SPDX-License-Identifier: Apache-2.0
#include "kube/movable.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "kube/budgets.h"

namespace gflow::kube {
namespace {

/// As the API server would show it, on a node, with these of its fields.
Pod movable_pod(const std::string& metadata, const std::string& spec = "{}") {
  auto object = nlohmann::json::parse(R"({"metadata": {"name": "p", "namespace": "default",
    "ownerReferences": [{"kind": "ReplicaSet", "name": "web-1f", "controller": true}]},
    "spec": {"nodeName": "v", "schedulerName": "gflow"}})");
  object["metadata"].merge_patch(nlohmann::json::parse(metadata));
  object["spec"].merge_patch(nlohmann::json::parse(spec));
  return pod_of(object);
}

std::string owned_by(const std::string& kind) {
  return fmt::format(
      R"({{"ownerReferences": [{{"kind": "{}", "name": "o", "uid": "u", "controller": true}}]}})",
      kind);
}
std::string annotated(const std::string& annotation, const std::string& value) {
  return fmt::format(R"({{"annotations": {{"{}": "{}"}}}})", annotation, value);
}

constexpr const char* kBySafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict";
constexpr const char* kByDoNotDisrupt = "karpenter.sh/do-not-disrupt";
constexpr const char* kByNoEviction = "descheduler.alpha.kubernetes.io/prefer-no-eviction";

TEST(MayMove, WhatIsMadeAnewAndNobodyKeeps) {
  struct Case {
    std::string metadata;
    std::string spec;
    bool moves;
  };
  const Case cases[] = {
      {"{}", "{}", true},
      {owned_by("StatefulSet"), "{}", true},
      {owned_by("PyTorchJob"), "{}", true},
      {R"({"ownerReferences": null})", "{}", false},
      {R"({"ownerReferences": [{"kind": "ReplicaSet", "name": "o"}]})", "{}", false},
      {owned_by("DaemonSet"), "{}", false},
      {owned_by("Node"), "{}", false},
      {owned_by("Job"), "{}", false},
      {R"({"deletionTimestamp": "2026-11-30T00:00:00Z"})", "{}", false},
      {annotated(kBySafeToEvict, "false"), "{}", false},
      {annotated(kBySafeToEvict, "true"), "{}", true},
      {annotated(kByDoNotDisrupt, "true"), "{}", false},
      {annotated(kByDoNotDisrupt, "4h"), "{}", false},
      {annotated(kByDoNotDisrupt, "false"), "{}", true},
      {annotated(kByNoEviction, ""), "{}", false},
      {"{}", R"({"nodeName": null})", false},
      {"{}", R"({"priority": 2000000000})", false},
      {"{}", R"({"priority": 1000000000})", true},
      {"{}", R"({"nodeSelector": {"zone": "a"}})", true},
      {"{}",
       R"({"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]})",
       false},
      {"{}", R"({"volumes": [{"name": "d", "emptyDir": {}}]})", false},
      {"{}", R"({"volumes": [{"name": "d", "emptyDir": {"medium": "Memory"}}]})", true},
      {"{}", R"({"volumes": [{"name": "d", "hostPath": {"path": "/data"}}]})", false},
      {"{}", R"({"volumes": [{"name": "d", "configMap": {"name": "c"}}]})", true},
      {annotated(kBySafeToEvict, "true"), R"({"volumes": [{"name": "d", "emptyDir": {}}]})", true},
      {"{}", R"({"containers": [{"name": "c", "ports": [{"hostPort": 80}]}]})", false},
      {"{}",
       R"({"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1,
           "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}]})",
       false},
      {R"({"annotations": {"gflow/gang": "g", "gflow/gang-size": "2"}})", "{}", false},
  };
  for (const Case& each : cases) {
    EXPECT_EQ(may_move(movable_pod(each.metadata, each.spec), nullptr), each.moves)
        << each.metadata << each.spec;
  }
}

TEST(MayMove, AsDisruptionBudgetsLetIt) {
  const Pod pod = movable_pod(R"({"labels": {"app": "web"}})");
  const auto budget = [](int allowed, const std::string& selector, int seen = 1) {
    return budget_of(nlohmann::json::parse(fmt::format(
        R"({{"metadata": {{"uid": "b{}", "namespace": "default", "generation": 1}},
             "spec": {{"selector": {}}},
             "status": {{"disruptionsAllowed": {}, "observedGeneration": {}}}}})",
        allowed,
        selector,
        allowed,
        seen)));
  };
  const std::string web = R"({"matchLabels": {"app": "web"}})";
  EXPECT_TRUE(may_evict({}, pod));
  EXPECT_TRUE(may_evict({{"a", budget(1, web)}}, pod));
  EXPECT_FALSE(may_evict({{"a", budget(0, web)}}, pod));
  EXPECT_FALSE(may_evict({{"a", budget(1, web, 0)}}, pod)) << "it was changed, and nobody looked";
  EXPECT_FALSE(may_evict({{"a", budget(0, "{}")}}, pod)) << "of all pods";
  EXPECT_TRUE(may_evict({{"a", budget(0, "null")}}, pod)) << "of none";
  EXPECT_TRUE(may_evict({{"a", budget(0, R"({"matchLabels": {"app": "db"}})")}}, pod));
  EXPECT_FALSE(may_evict({{"a", budget(1, web)}, {"b", budget(2, "{}")}}, pod))
      << "the API server evicts none that has two";
  Budget elsewhere = budget(0, web);
  elsewhere.name_space = "other";
  EXPECT_TRUE(may_evict({{"a", elsewhere}}, pod));
}

/// Two that may each go need not be let go together.
TEST(MayMove, SeveralOfOneBudget) {
  const Pod pod = movable_pod(R"({"labels": {"app": "web"}})");
  const Pod other = movable_pod(R"({"labels": {"app": "db"}})");
  std::map<std::string, Budget> budgets;
  budgets["a"] = {.uid = "a",
                  .name_space = pod.name_space,
                  .name = "web",
                  .selector = Term{{"app", "In", {"web"}}},
                  .allowed = 1};
  EXPECT_EQ(budget_exceeded(budgets, {&pod, &other}), nullptr);
  EXPECT_EQ(budget_exceeded(budgets, {&pod, &other, &pod}), &budgets.at("a"));
  budgets["a"].allowed = 2;
  EXPECT_EQ(budget_exceeded(budgets, {&pod, &other, &pod}), nullptr);
}

/// Evicting one of a Job is a failure of the Job, unless that says otherwise or somebody else does.
TEST(MayMove, OneOfAJobWhereThatMindsNotToLoseIt) {
  const Pod pod = movable_pod(owned_by("Job"));
  BatchJob job;
  EXPECT_FALSE(may_move(pod, &job));
  job.retries_lost = true;
  EXPECT_TRUE(may_move(pod, &job));
  auto both = nlohmann::json::parse(owned_by("Job"));
  both.merge_patch(nlohmann::json::parse(annotated(kBySafeToEvict, "true")));
  EXPECT_TRUE(may_move(movable_pod(both.dump()), nullptr));
  job.retries_lost = false;
  EXPECT_FALSE(may_move(movable_pod(both.dump()), &job)) << "it would be its end";
}

}  // namespace
}  // namespace gflow::kube
