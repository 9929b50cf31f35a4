// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kube/device_objects.h"
#include "kube/scheduler.h"

/// Pods with ResourceClaims.
namespace gflow::kube {
namespace {

using Document = nlohmann::json;

constexpr const char* kDriver = "gpu.example.com";

/// A cluster in memory in which what is decided is written when a test says so.
class KubeSchedulerDevices : public testing::Test {
 protected:
  void begin() {
    scheduler.emplace("gflow", engine::Policy{});
    if (is_readable) {
      scheduler->devices().put(device_class_of(gpu_class));
      for (const auto& [name, one] : slices) scheduler->devices().put(slice_of(one));
      for (const auto& [name, one] : claims) scheduler->devices().put(resource_claim_of(one));
      scheduler->devices().know();
    } else {
      scheduler->devices().cannot_read("resourceslices", "list resourceslices: not there");
    }
    for (const auto& [name, one] : nodes) scheduler->put(one);
    for (const auto& [name, one] : pods) scheduler->put(one);
    scheduler->begin(now());
  }

  /// With so many GPUs of its claims, each of this memory.
  void node(const std::string& name, int gpus, bool is_shared = false, int cpus = 64) {
    Node made;
    made.uid = made.name = name;
    made.labels = {{"kubernetes.io/hostname", name}};
    made.allocatable = {
        {"cpu", cpus * 1000}, {"memory", std::int64_t{32} << 40}, {"pods", 110 * 1000}};
    nodes[name] = made;
    if (scheduler) scheduler->put(made);
    Document devices = Document::array();
    for (int i = 0; i < gpus; ++i) {
      Document one = {{"name", fmt::format("gpu-{}", i)},
                      {"attributes", {{"index", {{"int", i}}}}},
                      {"capacity", {{"memory", {{"value", "80Gi"}}}}}};
      if (is_shared) one["allowMultipleAllocations"] = true;
      devices.push_back(std::move(one));
    }
    const Document slice = {
        {"metadata", {{"uid", "s-" + name}, {"name", "s-" + name}}},
        {"spec",
         {{"driver", kDriver},
          {"nodeName", name},
          {"pool", {{"name", name}, {"generation", 1}, {"resourceSliceCount", 1}}},
          {"devices", devices}}}};
    slices[name] = slice;
    if (scheduler) scheduler->devices().put(slice_of(slice));
  }

  static Document request(int count = 1, const std::string& memory = "") {
    Document exactly = {
        {"deviceClassName", "gpu"}, {"allocationMode", "ExactCount"}, {"count", count}};
    if (!memory.empty()) exactly["capacity"]["requests"]["memory"] = memory;
    return {{"name", "r"}, {"exactly", exactly}};
  }

  void claim(const std::string& name, const Document& asked, const std::string& owner = "") {
    Document made = {{"metadata", {{"uid", "u-" + name}, {"namespace", "default"}, {"name", name}}},
                     {"spec", {{"devices", {{"requests", Document::array({asked})}}}}},
                     {"status", Document::object()}};
    if (!owner.empty()) {
      const Document its = {{"kind", "Pod"}, {"uid", owner}, {"controller", true}};
      made["metadata"]["ownerReferences"] = Document::array({its});
    }
    tell(name, made);
  }

  void tell(const std::string& name, const Document& made) {
    claims[name] = made;
    if (scheduler) scheduler->devices().put(resource_claim_of(made));
  }

  Pod pod(const std::string& name, std::vector<PodDevices> devices) {
    Pod made;
    made.uid = made.name = name;
    made.name_space = "default";
    made.scheduler = "gflow";
    made.created = WallTime(std::chrono::seconds(++made_));
    made.requests = {{"cpu", 1000}};
    made.devices = std::move(devices);
    return made;
  }

  /// Of a template, with its claim.
  void come(const std::string& name, const Document& asked) {
    claim(name + "-gpus", asked, name);
    come(pod(name, {{"gpus", name + "-gpus", true}}));
  }
  void come_with(const std::string& name, const std::string& shared) {
    come(pod(name, {{"gpus", shared}}));
  }
  void come(const Pod& one) {
    pods[one.uid] = one;
    if (scheduler) scheduler->put(one);
  }

  /// "POD@NODE=DEVICES" of all that is decided; with what that takes written at once.
  std::vector<std::string> settle() {
    std::vector<std::string> words;
    while (true) {
      const Decisions decided = scheduler->settle(now());
      EXPECT_EQ(scheduler->check(), "");
      if (decided.binds.empty()) return words;
      for (const Bind& bind : decided.binds) {
        words.push_back(text_of_bind(bind));
        write(bind);
        bind_pod(bind);
      }
    }
  }
  static std::string text_of_bind(const Bind& bind) {
    std::vector<std::string> devices;
    for (const DeviceStep& step : bind.devices) {
      for (const auto& one : step.allocation.devices) devices.push_back(one.id.device);
    }
    return fmt::format("{}@{}={}", bind.name, bind.node, fmt::join(devices, ","));
  }
  /// Decisions of which nothing came yet, by pod.
  std::map<std::string, Bind> decide_all() {
    std::map<std::string, Bind> all;
    while (true) {
      const Decisions decided = scheduler->settle(now());
      if (decided.binds.empty()) return all;
      for (const Bind& bind : decided.binds) all[bind.name] = bind;
    }
  }
  void refuse(const std::string& name, bool may_be_written = false) {
    scheduler->devices().handed_back(name, may_be_written);
    scheduler->not_bound(name, "somebody changed it");
  }
  /// Nobody has it any more.
  void deallocate(const std::string& name) {
    claims.at(name)["status"] = Document::object();
    tell(name, claims.at(name));
  }
  /// One decision, of which nothing came yet.
  Bind decide() {
    const Decisions decided = scheduler->settle(now());
    EXPECT_EQ(decided.binds.size(), 1U);
    return decided.binds.empty() ? Bind{} : decided.binds.front();
  }
  void write(const Bind& bind) {
    for (const DeviceStep& step : bind.devices) {
      Document& its = claims.at(step.name);
      if (!step.allocation.text.empty()) {
        Document allocation = Document::parse(step.allocation.text);
        for (Document& result : allocation["devices"]["results"]) {
          if (result.contains("shareID")) result["shareID"] = "some";
        }
        its["status"]["allocation"] = allocation;
      }
      its["status"]["reservedFor"].push_back({{"resource", "pods"}, {"uid", bind.uid}});
      tell(step.name, its);
    }
    check_exclusive();
  }
  /// As the claims say it.
  void check_exclusive() const {
    std::set<std::string> had;
    for (const auto& [name, claim] : claims) {
      const auto results = Document::json_pointer("/status/allocation/devices/results");
      if (!claim.contains(results)) continue;
      for (const Document& one : claim[results]) {
        if (one.contains("shareID")) continue;
        const std::string device =
            one["pool"].get<std::string>() + "/" + one["device"].get<std::string>();
        EXPECT_TRUE(had.insert(device).second) << device << " is had twice";
      }
    }
  }
  void bind_pod(const Bind& bind) {
    scheduler->devices().handed_back(bind.uid, true);
    Pod& there = pods.at(bind.uid);
    there.node = bind.node;
    scheduler->bound(bind.uid);
    scheduler->put(there);
  }
  /// With all that it had.
  void end(const std::string& name) {
    scheduler->pod_gone(name);
    pods.erase(name);
    for (auto& [of, one] : claims) {
      if (of != name + "-gpus") continue;
      one["status"] = Document::object();
      scheduler->devices().put(resource_claim_of(one));
    }
  }
  std::string why(const std::string& name) {
    for (const Waiting& one : scheduler->waiting(now())) {
      if (one.pod->name == name) return one.why;
    }
    return {};
  }
  Now now() {
    mono += std::chrono::seconds(5);
    return {WallTime(std::chrono::hours(24 * 365 * 50)) + mono, MonoTime(mono)};
  }

  using Words = std::vector<std::string>;
  std::optional<Scheduler> scheduler;
  bool is_readable = true;
  Document gpu_class = {
      {"metadata", {{"uid", "c"}, {"name", "gpu"}}},
      {"spec",
       {{"selectors",
         Document::array(
             {{{"cel", {{"expression", R"(device.driver == "gpu.example.com")"}}}}})}}}};
  std::map<std::string, Node> nodes;
  std::map<std::string, Document> slices;
  std::map<std::string, Document> claims;
  std::map<std::string, Pod> pods;
  std::chrono::milliseconds mono{1000};

 private:
  int made_ = 0;
};

TEST_F(KubeSchedulerDevices, GivesEachDeviceToOneClaim) {
  node("n", 3);
  begin();
  come("a", request());
  come("b", request(2));
  come("c", request());
  EXPECT_EQ(settle(), (Words{"a@n=gpu-0", "b@n=gpu-1,gpu-2"}));
  EXPECT_EQ(why("c"),
            "0/1 nodes are available: 1 Insufficient devices of class gpu for resourceclaim gpus.");
  end("a");
  EXPECT_EQ(settle(), Words{"c@n=gpu-0"});
}

TEST_F(KubeSchedulerDevices, GoesWhereTheDevicesAre) {
  node("none", 0);
  node("one", 1);
  node("two", 2);
  begin();
  come("a", request(2));
  come("b", request());
  come("c", request(2));
  EXPECT_EQ(settle(), (Words{"a@two=gpu-0,gpu-1", "b@one=gpu-0"}));
  EXPECT_EQ(why("c"),
            "0/3 nodes are available: 3 Insufficient devices of class gpu for resourceclaim gpus.");
  node("more", 2);
  EXPECT_EQ(settle(), Words{"c@more=gpu-0,gpu-1"});
}

TEST_F(KubeSchedulerDevices, GivesPartsOfSharedDevices) {
  node("n", 1, true);
  begin();
  come("a", request(1, "50Gi"));
  come("b", request(1, "40Gi"));
  come("c", request(1, "30Gi"));
  EXPECT_EQ(settle(), (Words{"a@n=gpu-0", "c@n=gpu-0"}));
  const Document& status = claims.at("c-gpus")["status"];
  EXPECT_EQ(status["allocation"]["devices"]["results"][0]["consumedCapacity"]["memory"], "30Gi");
  EXPECT_NE(why("b"), "");
  end("a");
  EXPECT_EQ(settle(), Words{"b@n=gpu-0"});
}

TEST_F(KubeSchedulerDevices, PutsPodsOfOneClaimOnOneNode) {
  node("m", 1);
  node("n", 1);
  claim("shared", request());
  begin();
  come_with("a", "shared");
  come_with("b", "shared");
  const Words binds = settle();
  ASSERT_EQ(binds.size(), 2U);
  EXPECT_EQ(binds[0].substr(1), binds[1].substr(1));
  EXPECT_EQ(claims.at("shared")["status"]["reservedFor"].size(), 2U);
  come_with("c", "shared");
  EXPECT_EQ(settle().at(0).substr(1), binds[0].substr(1)) << "it is allocated by now";
}

TEST_F(KubeSchedulerDevices, WaitsForItsClaims) {
  node("n", 1);
  begin();
  come(pod("a", {{"gpus", "", true}}));
  come(pod("b", {{"gpus", "later"}}));
  EXPECT_EQ(settle(), Words{});
  EXPECT_EQ(why("a"), "0/1 nodes are available: resourceclaim for \"gpus\" not created yet.");
  EXPECT_EQ(why("b"), "0/1 nodes are available: resourceclaim \"later\" not found.");
  claim("a-gpus", request(), "somebody");
  come(pod("a", {{"gpus", "a-gpus", true}}));
  EXPECT_EQ(settle(), Words{});
  EXPECT_EQ(why("a"),
            "0/1 nodes are available: resourceclaim \"a-gpus\" was not created for the pod.");
  claim("later", request());
  EXPECT_EQ(settle(), Words{"b@n=gpu-0"});
}

TEST_F(KubeSchedulerDevices, WaitsWhereTheyCannotBeRead) {
  node("n", 1);
  is_readable = false;
  begin();
  come("a", request());
  come(pod("b", {}));
  EXPECT_EQ(settle(), Words{"b@n="});
  EXPECT_EQ(why("a"),
            "0/1 nodes are available: resourceclaims cannot be read: list resourceslices: not "
            "there.");
}

TEST_F(KubeSchedulerDevices, HoldsWhatMayBeWritten) {
  node("n", 1);
  begin();
  come("a", request());
  const Bind bind = decide();
  // Its pod goes, and who writes it tries on.
  scheduler->pod_gone("a");
  come("b", request());
  EXPECT_EQ(settle(), Words{});
  mono += std::chrono::minutes(10);
  EXPECT_EQ(settle(), Words{}) << "somebody is writing it still";
  scheduler->devices().handed_back("a", true);
  EXPECT_EQ(settle(), Words{}) << "nobody knows whether it was written";
  mono += std::chrono::minutes(2);
  EXPECT_EQ(settle(), Words{"b@n=gpu-0"}) << "it was not";
}

TEST_F(KubeSchedulerDevices, DecidesAnewWhatWasRefused) {
  node("n", 1);
  begin();
  come("a", request());
  (void)decide();
  refuse("a");
  scheduler->pod_gone("a");
  come("b", request());
  EXPECT_EQ(settle(), Words{"b@n=gpu-0"}) << "what was not written is anybody's";
}

TEST_F(KubeSchedulerDevices, HoldsWhatAnotherPodOfTheClaimHasWritten) {
  node("n", 1);
  claim("shared", request());
  begin();
  come_with("a", "shared");
  come_with("b", "shared");
  const auto both = decide_all();
  ASSERT_EQ(both.size(), 2U);
  scheduler->pod_gone("a");  // whose request nobody answered
  refuse("b");
  scheduler->pod_gone("b");
  come("c", request());
  EXPECT_EQ(settle(), Words{});
  write(both.at("a"));
  EXPECT_EQ(settle(), Words{});
  scheduler->devices().handed_back("a", true);
  EXPECT_EQ(settle(), Words{});
  deallocate("shared");
  EXPECT_EQ(settle(), Words{"c@n=gpu-0"});
}

TEST_F(KubeSchedulerDevices, HoldsWhatAPodIsStillToHave) {
  node("n", 1);
  claim("shared", request());
  begin();
  come_with("a", "shared");
  come_with("b", "shared");
  const auto both = decide_all();
  ASSERT_EQ(both.size(), 2U);
  write(both.at("b"));
  bind_pod(both.at("b"));
  scheduler->pod_gone("b");
  deallocate("shared");  // b was the last one to have it, and a is to have it again
  come("c", request());
  EXPECT_EQ(settle(), Words{});
  write(both.at("a"));
  bind_pod(both.at("a"));
  EXPECT_EQ(settle(), Words{});
  scheduler->pod_gone("a");
  deallocate("shared");
  EXPECT_EQ(settle(), Words{"c@n=gpu-0"});
}

TEST_F(KubeSchedulerDevices, GoesOnAfterAKill) {
  node("m", 1);
  node("n", 1);
  begin();
  come("a", request());
  const Bind bind = decide();
  write(bind);  // and then it is killed, before the pod is bound
  begin();
  come("b", request());
  const Words binds = settle();
  ASSERT_EQ(binds.size(), 2U);
  EXPECT_EQ(binds[0], "a@" + bind.node + "=gpu-0");
  EXPECT_NE(binds[1], "b@" + bind.node + "=gpu-0");
}

TEST_F(KubeSchedulerDevices, CountsWhatOthersWereGiven) {
  node("n", 2);
  claim("theirs", request());
  Document theirs = claims.at("theirs");
  const Document result = {
      {"request", "r"}, {"driver", kDriver}, {"pool", "n"}, {"device", "gpu-0"}};
  theirs["status"]["allocation"]["devices"]["results"] = Document::array({result});
  tell("theirs", theirs);
  begin();
  come("a", request());
  EXPECT_EQ(settle(), Words{"a@n=gpu-1"});
}

TEST_F(KubeSchedulerDevices, MindsWhatElseThePodAsksFor) {
  node("small", 1, false, 1);
  node("large", 1, false, 8);
  begin();
  claim("a-gpus", request(), "a");
  Pod large = pod("a", {{"gpus", "a-gpus", true}});
  large.requests["cpu"] = 4000;
  come(large);
  EXPECT_EQ(settle(), Words{"a@large=gpu-0"});
}

TEST_F(KubeSchedulerDevices, NamesWhatItDoesNotAllocate) {
  node("n", 1);
  begin();
  Document asked = request();
  asked["exactly"]["adminAccess"] = true;
  come("a", asked);
  asked = request();
  asked["exactly"]["selectors"] =
      Document::array({{{"cel", {{"expression", "device.driver.matches('x')"}}}}});
  come("b", asked);
  EXPECT_EQ(settle(), Words{});
  EXPECT_EQ(why("a"),
            "0/1 nodes are available: resourceclaim \"a-gpus\": request r has adminAccess, which "
            "gflow-kube does not judge: leave it to another scheduler.");
  EXPECT_EQ(why("b"),
            "0/1 nodes are available: 1 request r: selector 1: gflow-kube cannot read "
            "'.matches(...)'.");
}

TEST_F(KubeSchedulerDevices, JudgesANodeAnewThatHasOtherLabels) {
  node("n", 1, false, 1);
  Document& spec = slices.at("n")["spec"];
  spec.erase("nodeName");
  const Document in_rack = {{"key", "rack"}, {"operator", "In"}, {"values", {"a"}}};
  spec["nodeSelector"]["nodeSelectorTerms"] =
      Document::array({{{"matchExpressions", Document::array({in_rack})}}});
  begin();
  come("a", request());
  EXPECT_EQ(settle(), Words{});
  Node labelled = nodes.at("n");
  labelled.labels["rack"] = "a";
  scheduler->put(labelled);
  EXPECT_EQ(settle(), Words{"a@n=gpu-0"});
  end("a");
  // One that waits for room is not put there for ever once the node has no device any more.
  come(pod("x", {}));
  EXPECT_EQ(settle(), Words{"x@n="});
  come("b", request());
  EXPECT_EQ(settle(), Words{});
  scheduler->put(nodes.at("n"));
  end("x");
  EXPECT_EQ(settle(), Words{});
  EXPECT_NE(why("b").find("Insufficient devices"), std::string::npos) << why("b");
}

TEST_F(KubeSchedulerDevices, WaitsWhereWhatItReadMayBeOld) {
  node("n", 1);
  begin();
  (void)settle();
  scheduler->devices().cannot_read("resourceclaims", "watch resourceclaims: forbidden");
  come("a", request());
  EXPECT_EQ(settle(), Words{"a@n=gpu-0"}) << "it may be over in a moment";
  end("a");
  mono += std::chrono::minutes(2);
  come("b", request());
  EXPECT_EQ(settle(), Words{});
  EXPECT_EQ(why("b"),
            "0/1 nodes are available: resourceclaims cannot be read: watch resourceclaims: "
            "forbidden.");
  scheduler->devices().can_read("resourceclaims");
  EXPECT_EQ(settle(), Words{"b@n=gpu-0"});
}

TEST_F(KubeSchedulerDevices, SaysWhichDeviceIsGivenTwice) {
  node("n", 2);
  begin();
  come("a", request());
  EXPECT_EQ(settle(), Words{"a@n=gpu-0"});
  EXPECT_TRUE(scheduler->devices().take_doubles().empty());
  claim("theirs", request());
  Document theirs = claims.at("theirs");
  theirs["status"]["allocation"] = claims.at("a-gpus")["status"]["allocation"];
  tell("theirs", theirs);
  EXPECT_EQ(scheduler->devices().take_doubles(),
            Words{"device gpu-0 of pool n (gpu.example.com) is given to resourceclaim "
                  "default/theirs and to default/a-gpus"});
}

TEST(DeviceObjects, SaysWhatWasGivenAsTheApiDoes) {
  claims::Given given;
  given.devices.push_back({.request = "r/one",
                           .id = {"d", "p", "x"},
                           .is_shared = true,
                           .consumed = {{"memory", claims::Amount{claims::whole(8 << 20)}}},
                           .tolerations_text = R"([{"key":"k"}])",
                           .where = {.node = "n"}});
  given.config.push_back({{"r"}, R"({"opaque":{"driver":"d"}})", true});
  const auto made = allocation_of(given, "n");
  ASSERT_TRUE(made);
  EXPECT_EQ(Document::parse(made->text), Document::parse(R"({
      "devices": {
        "results": [{"request": "r/one", "driver": "d", "pool": "p", "device": "x",
                     "tolerations": [{"key": "k"}], "shareID": null,
                     "consumedCapacity": {"memory": "8Mi"}}],
        "config": [{"opaque": {"driver": "d"}, "source": "FromClass", "requests": ["r"]}]},
      "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [
        {"key": "metadata.name", "operator": "In", "values": ["n"]}]}]}})"));
  claims::Given elsewhere;
  elsewhere.devices.push_back(
      {.request = "r",
       .id = {"d", "p", "x"},
       .where = {.selector = R"({"nodeSelectorTerms":[{"matchExpressions":[]},{}]})"}});
  EXPECT_FALSE(allocation_of(elsewhere, "n")) << "which a claim cannot say";
}

TEST(DeviceObjects, ReadsWhateverItIsGiven) {
  for (const char* text : {"null",
                           "[]",
                           "{}",
                           R"({"spec":[],"status":3})",
                           R"({"spec":{"devices":[1,{"attributes":[1],"capacity":{"m":1}}]}})",
                           R"({"spec":{"devices":{"requests":[3,{"exactly":1}]}}})"}) {
    const Document document = Document::parse(text);
    (void)slice_of(document);
    (void)device_class_of(document);
    (void)resource_claim_of(document);
  }
}

}  // namespace
}  // namespace gflow::kube
