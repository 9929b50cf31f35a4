// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "kube/access.h"
#include "kube/objects.h"
#include "kube/predicates.h"
#include "kube/quantity.h"
#include "kube/want.h"

namespace gflow::kube {
namespace {

using Document = nlohmann::json;

TEST(Quantity, IsReadExactlyAndRoundedUp) {
  struct Case {
    std::string text;
    std::int64_t milli;
  };
  const std::vector<Case> cases = {{"0", 0},
                                   {"2", 2000},
                                   {"500m", 500},
                                   {"0.5", 500},
                                   {".5", 500},
                                   {"1.", 1000},
                                   {"1u", 1},
                                   {"1n", 1},
                                   {"1k", 1'000'000},
                                   {"1Ki", 1'024'000},
                                   {"1.5Gi", 1'610'612'736'000},
                                   {"1e3", 1'000'000},
                                   {"1E3", 1'000'000},
                                   {"1E", INT64_MAX},
                                   {"12e-3", 12},
                                   {"+3", 3000},
                                   {"-3", 0},
                                   {"9223372036854775807", INT64_MAX},
                                   {"1e60", INT64_MAX},
                                   {"16Ei", INT64_MAX}};
  for (const Case& one : cases) {
    const auto read = read_milli(one.text);
    ASSERT_TRUE(read) << one.text;
    EXPECT_EQ(*read, one.milli) << one.text;
  }
  EXPECT_EQ(*read_whole("1500m"), 2);
  for (const char* none : {"", "x", "1x", "1.2.3", "Ki", "1KiB", "1e", "--1", "1 Gi", "m"}) {
    EXPECT_FALSE(read_milli(none)) << none;
  }
}

TEST(Access, ServerIsReadAsAUrl) {
  struct Case {
    std::string url;
    std::string host;
    std::string port;
    std::string path;
  };
  const std::vector<Case> cases = {
      {"https://10.0.0.1:6443", "10.0.0.1", "6443", ""},
      {"https://k.example.com/", "k.example.com", "443", ""},
      {"https://k.example.com/k8s/c1/", "k.example.com", "443", "/k8s/c1"},
      {"http://localhost:8001", "localhost", "8001", ""},
      {"https://[::1]:6443", "::1", "6443", ""},
      {"https://[fd00::1]", "fd00::1", "443", ""}};
  for (const Case& one : cases) {
    Access access;
    ASSERT_TRUE(read_server(one.url, access)) << one.url;
    EXPECT_EQ(access.host, one.host) << one.url;
    EXPECT_EQ(access.port, one.port) << one.url;
    EXPECT_EQ(access.path, one.path) << one.url;
  }
  for (const char* none : {"", "k.example.com", "ftp://x", "https://", "https://x:y"}) {
    Access access;
    EXPECT_FALSE(read_server(none, access)) << none;
  }
}

TEST(Predicates, TaintsAreToleratedByKubernetesRules) {
  const Taint taint{"team", "vision", "NoSchedule"};
  EXPECT_FALSE(tolerates({}, taint));
  EXPECT_TRUE(tolerates({{"", "Exists", "", ""}}, taint));
  EXPECT_TRUE(tolerates({{"team", "Exists", "", "NoSchedule"}}, taint));
  EXPECT_TRUE(tolerates({{"team", "", "vision", ""}}, taint));
  EXPECT_FALSE(tolerates({{"team", "Equal", "audio", ""}}, taint));
  EXPECT_FALSE(tolerates({{"team", "Exists", "", "NoExecute"}}, taint));
  EXPECT_FALSE(tolerates({{"", "Equal", "vision", ""}}, taint));
  EXPECT_FALSE(tolerates({{"team", "Lt", "9", ""}}, taint));
}

TEST(Predicates, ExpressionsAreMatchedByKubernetesRules) {
  Node node;
  node.name = "n1";
  node.labels = {{"disk", "ssd"}, {"speed", "10"}};
  EXPECT_TRUE(matches({"disk", "In", {"hdd", "ssd"}}, node));
  EXPECT_FALSE(matches({"disk", "NotIn", {"ssd"}}, node));
  EXPECT_TRUE(matches({"rack", "NotIn", {"ssd"}}, node));
  EXPECT_TRUE(matches({"disk", "Exists", {}}, node));
  EXPECT_TRUE(matches({"rack", "DoesNotExist", {}}, node));
  EXPECT_TRUE(matches({"speed", "Gt", {"9"}}, node));
  EXPECT_FALSE(matches({"speed", "Lt", {"10"}}, node));
  EXPECT_FALSE(matches({"disk", "Gt", {"9"}}, node));
  EXPECT_TRUE(matches({"metadata.name", "In", {"n1"}, true}, node));
  EXPECT_FALSE(matches({"disk", "Near", {"ssd"}}, node));
  Wishes none_of_it;
  none_of_it.affinity.emplace();
  EXPECT_NE(refusal_of(node, none_of_it), "");
  none_of_it.affinity->emplace_back();
  EXPECT_NE(refusal_of(node, none_of_it), "") << "a term without conditions is met by no node";
}

TEST(Predicates, HostPortsCollideWhereTheirAddressesDo) {
  EXPECT_TRUE(collide({80, "", ""}, {80, "TCP", "10.0.0.1"}));
  EXPECT_TRUE(collide({80, "TCP", "0.0.0.0"}, {80, "TCP", "10.0.0.1"}));
  EXPECT_FALSE(collide({80, "TCP", "10.0.0.2"}, {80, "TCP", "10.0.0.1"}));
  EXPECT_FALSE(collide({80, "UDP", ""}, {80, "TCP", ""}));
  EXPECT_FALSE(collide({80, "", ""}, {81, "", ""}));
}

/// A container that asks for so many CPUs.
Document container(const char* cpus, bool is_sidecar = false) {
  Document made = {{"resources", {{"requests", {{"cpu", cpus}}}}}};
  if (is_sidecar) made["restartPolicy"] = "Always";
  return made;
}

TEST(Objects, APodHoldsWhatKubernetesCounts) {
  struct Case {
    const char* what;
    Document spec;
    std::int64_t cpus;
  };
  const auto list = [](std::initializer_list<Document> of) { return Document::array_t(of); };
  const std::vector<Case> cases = {
      {"all of its containers", {{"containers", list({container("1"), container("500m")})}}, 1500},
      {"the most of what runs before",
       {{"containers", list({container("1")})},
        {"initContainers", list({container("3"), container("2")})}},
       3000},
      {"what runs beside them, too",
       {{"containers", list({container("1")})}, {"initContainers", list({container("2", true)})}},
       3000},
      {"what runs before, with what runs beside it already",
       {{"containers", list({container("1")})},
        {"initContainers", list({container("2", true), container("4"), container("1", true)})}},
       6000},
      {"the overhead",
       {{"containers", list({container("1")})}, {"overhead", {{"cpu", "250m"}}}},
       1250},
      {"what the pod says of itself",
       {{"containers", list({container("1")})}, {"resources", {{"requests", {{"cpu", "3"}}}}}},
       3000}};
  for (const Case& one : cases) {
    std::string mistake;
    EXPECT_EQ(amount_of(held_by(one.spec, mistake), "cpu"), one.cpus) << one.what;
    EXPECT_EQ(mistake, "") << one.what;
  }
}

Pod asking(std::string gpu, Amounts requests) {
  Pod pod;
  pod.gpu = std::move(gpu);
  pod.requests = std::move(requests);
  return pod;
}

TEST(Want, RequestsAreReadFromAnnotationAndResources) {
  const auto whole =
      request_of(asking("", {{"nvidia.com/gpu", 2000}, {"cpu", 1500}, {"memory", 1}}));
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->gpus, 2);
  EXPECT_EQ(whole->vendor, "nvidia");
  EXPECT_EQ(whole->cpus, 1500);
  EXPECT_EQ(whole->memory, Memory{1});
  const auto part = request_of(asking("8G,0.5", {}));
  ASSERT_TRUE(part);
  EXPECT_EQ(part->share, Share::percent(50));
  EXPECT_EQ(part->gpu_memory, Memory::gib(8));
  const auto both = request_of(asking("2(V100)", {{"nvidia.com/gpu", 2000}}));
  ASSERT_TRUE(both);
  EXPECT_EQ(both->models, std::vector<std::string>{"V100"});
  EXPECT_FALSE(request_of(asking("1(V100)", {{"nvidia.com/gpu", 2000}})));
  EXPECT_FALSE(request_of(asking("0.5", {{"nvidia.com/gpu", 1000}})));
  EXPECT_FALSE(request_of(asking("many", {})));
  EXPECT_FALSE(request_of(asking("", {{"nvidia.com/gpu", 1000}, {"amd.com/gpu", 1000}})));
}

TEST(Want, PrioritiesKeepTheirOrder) {
  int before = priority_of(INT32_MIN);
  EXPECT_GE(before, 0);
  for (const int priority : {-1'000'000,
                             -1000,
                             -1,
                             0,
                             1,
                             2,
                             5,
                             100,
                             120,
                             1000,
                             1'000'000,
                             1'000'000'000,
                             2'000'000'000,
                             2'000'001'000,
                             INT32_MAX}) {
    EXPECT_GE(priority_of(priority), before) << priority;
    before = priority_of(priority);
  }
  EXPECT_EQ(priority_of(0), kDefaultPriority);
  EXPECT_LT(priority_of(-1), priority_of(0));
  EXPECT_GT(priority_of(1), priority_of(0));
  EXPECT_LE(before, kMaxPriority);
}

TEST(Want, WhatWasChosenIsReadAsItWasWritten) {
  const ChosenDevices chosen{"n1",
                             {{"nvidia.com/gpu", 3, Share::percent(50), Memory::gib(8)},
                              {"nvidia.com/gpu", 5, Share::whole(), Memory{}}}};
  EXPECT_EQ(text_of(chosen),
            R"({"node":"n1","devices":[{"resource":"nvidia.com/gpu","index":3,"share_parts":5000,)"
            R"("memory_bytes":8589934592},{"resource":"nvidia.com/gpu","index":5,)"
            R"("share_parts":10000}]})");
  EXPECT_EQ(read_chosen(text_of(chosen)), chosen);
  for (const char* none :
       {"",
        "[]",
        "{}",
        R"({"node":"n"})",
        R"({"node":1,"devices":[]})",
        R"({"node":"n","devices":[1]})",
        R"({"node":"n","devices":[{"resource":"x","index":-1,"share_parts":1}]})",
        R"({"node":"n","devices":[{"resource":"x","index":0}]})",
        R"({"node":"n","devices":[{"resource":"x","index":0,"share_parts":10001}]})"}) {
    EXPECT_FALSE(read_chosen(none)) << none;
  }
}

}  // namespace
}  // namespace gflow::kube
