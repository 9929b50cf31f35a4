// SPDX-License-Identifier: Apache-2.0
#include "kube/volumes.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace gflow::kube {
namespace {

using Json = nlohmann::json;

constexpr const char* kNobodyHas = "node(s) didn't find available persistent volumes to bind";

Node node(const std::string& name, const std::string& zone = "") {
  Node made;
  made.uid = made.name = name;
  made.labels["kubernetes.io/hostname"] = name;
  if (!zone.empty()) made.labels["topology.kubernetes.io/zone"] = zone;
  return made;
}

Pod pod(const std::string& name, std::vector<PodClaim> claims) {
  Pod made;
  made.uid = made.name = name;
  made.name_space = "default";
  made.claims = std::move(claims);
  return made;
}

Json claim(const std::string& name, const std::string& of, const std::string& size = "1Gi") {
  return {{"metadata", {{"uid", name}, {"namespace", "default"}, {"name", name}}},
          {"spec",
           {{"storageClassName", of},
            {"accessModes", {"ReadWriteOnce"}},
            {"resources", {{"requests", {{"storage", size}}}}}}}};
}

Json bound(Json claim, const std::string& volume) {
  claim["spec"]["volumeName"] = volume;
  claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = "yes";
  return claim;
}

/// On the node of this name; everywhere where there is none.
Json volume(const std::string& name,
            const std::string& of,
            const std::string& on = "",
            const std::string& size = "10Gi") {
  Json made = {{"metadata", {{"uid", name}, {"name", name}, {"resourceVersion", "7"}}},
               {"spec",
                {{"storageClassName", of},
                 {"accessModes", {"ReadWriteMany", "ReadWriteOnce"}},
                 {"capacity", {{"storage", size}}}}},
               {"status", {{"phase", "Available"}}}};
  if (!on.empty()) {
    made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"] = Json::parse(
        R"([{"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In","values":[")" +
        on + R"("]}]}])");
  }
  return made;
}

Json storage_class(const std::string& name, const std::string& provisioner, bool waits = true) {
  return {{"metadata", {{"uid", name}, {"name", name}}},
          {"provisioner", provisioner},
          {"volumeBindingMode", waits ? "WaitForFirstConsumer" : "Immediate"}};
}

class KubeVolumes : public ::testing::Test {
 protected:
  KubeVolumes() {
    put_class(storage_class("local", "kubernetes.io/no-provisioner"));
    put_class(storage_class("made", "example.com/maker"));
    put_class(storage_class("at-once", "example.com/maker", false));
    volumes_.know();
  }
  void put_claim(const Json& one) { volumes_.put(volume_claim_of(one)); }
  void put_volume(const Json& one) { volumes_.put(volume_of(one)); }
  void put_class(const Json& one) { volumes_.put(storage_class_of(one)); }
  [[nodiscard]] bool is_news_for(const Pod& pod) {
    return volumes_.concerns(volumes_.take_news(), pod);
  }
  [[nodiscard]] std::string refusal(const Pod& pod, const Node& node) const {
    return refusal_of(node, volumes_.storage_of(pod));
  }
  /// "CLAIM=VOLUME" of each, "CLAIM" where one is made; "none": it cannot be there.
  [[nodiscard]] std::string plan(const Pod& pod, const Node& node) const {
    const auto steps = volumes_.plan(pod, node);
    if (!steps) return "none";
    std::string text;
    for (const ClaimStep& step : *steps) {
      text += (text.empty() ? "" : " ") + step.name;
      if (!step.volume.empty()) text += "=" + step.volume;
    }
    return text;
  }

  Volumes volumes_;
  Node n1_ = node("n1", "a");
  Node n2_ = node("n2", "b");
  Pod train_ = pod("train", {{"data"}});
};

TEST_F(KubeVolumes, OfAPodWithoutClaimsNothingIsAsked) {
  EXPECT_EQ(volumes_.storage_of(pod("free", {})), Storage{});
  EXPECT_EQ(plan(pod("free", {}), n1_), "");
}

TEST_F(KubeVolumes, ABoundClaimIsWhereItsVolumeIs) {
  put_claim(bound(claim("data", "local"), "v1"));
  put_volume(volume("v1", "local", "n1"));
  EXPECT_EQ(refusal(train_, n1_), "");
  EXPECT_EQ(refusal(train_, n2_), "node(s) didn't match PersistentVolume's node affinity");
  EXPECT_EQ(plan(train_, n1_), "");
  put_volume(volume("v1", "local"));
  EXPECT_EQ(refusal(train_, n2_), "") << "everywhere";
}

TEST_F(KubeVolumes, TheZonesOfAVolumeAreThoseOfItsLabels) {
  put_claim(bound(claim("data", "made"), "v1"));
  Json of_zones = volume("v1", "made");
  of_zones["metadata"]["labels"]["topology.kubernetes.io/zone"] = "a__c";
  put_volume(of_zones);
  EXPECT_EQ(refusal(train_, n1_), "");
  EXPECT_EQ(refusal(train_, n2_), "node(s) had no available volume zone");
  EXPECT_EQ(refusal(train_, node("n3")), "") << "in no zone at all";
}

TEST_F(KubeVolumes, WhatIsWrongWithAClaimIsSaid) {
  const auto trouble = [this] { return volumes_.storage_of(train_).trouble; };
  EXPECT_EQ(trouble(), R"(persistentvolumeclaim "data" not found)");
  put_claim(claim("data", "at-once"));
  EXPECT_EQ(trouble(), "pod has unbound immediate PersistentVolumeClaims");
  put_claim(claim("data", "nowhere"));
  EXPECT_EQ(trouble(), R"(storageclass.storage.k8s.io "nowhere" not found)");
  put_claim(bound(claim("data", "local"), "v9"));
  EXPECT_EQ(trouble(),
            R"(persistentvolumeclaim "data" bound to non-existent persistentvolume "v9")");
  Json leaves = claim("data", "made");
  leaves["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  put_claim(leaves);
  EXPECT_EQ(trouble(), R"(persistentvolumeclaim "data" is being deleted)");
  Json to_be = claim("data", "local");
  to_be["spec"]["volumeName"] = "v1";
  put_claim(to_be);
  EXPECT_EQ(trouble(), "pod has unbound immediate PersistentVolumeClaims") << "not by this one";
}

TEST_F(KubeVolumes, AnEphemeralVolumeIsThePodsOwn) {
  const Pod own = pod("train", {{"train-scratch", true}});
  EXPECT_EQ(volumes_.storage_of(own).trouble,
            "waiting for ephemeral volume controller to create the persistentvolumeclaim "
            "\"train-scratch\"");
  Json made = claim("train-scratch", "made");
  put_claim(made);
  EXPECT_TRUE(volumes_.storage_of(own).trouble.contains("pod is not owner"));
  made["metadata"]["ownerReferences"] = Json::array({{{"kind", "Pod"}, {"uid", "train"}}});
  put_claim(made);
  EXPECT_EQ(plan(own, n1_), "train-scratch");
}

TEST_F(KubeVolumes, TheSmallestThatIsThereIsTaken) {
  put_claim(claim("data", "local", "5Gi"));
  put_volume(volume("big", "local", "n1", "20Gi"));
  put_volume(volume("right", "local", "n1", "10Gi"));
  put_volume(volume("small", "local", "n1", "4Gi"));
  put_volume(volume("other", "made", "n2"));
  Json taken = volume("taken", "local", "n1", "6Gi");
  taken["spec"]["claimRef"] = {{"namespace", "default"}, {"name", "of-another"}};
  put_volume(taken);
  Json block = volume("block", "local", "n1", "6Gi");
  block["spec"]["volumeMode"] = "Block";
  put_volume(block);
  EXPECT_EQ(plan(train_, n1_), "data=right");
  EXPECT_EQ(refusal(train_, n2_), kNobodyHas);
  const auto steps = *volumes_.plan(train_, n1_);
  volumes_.reserve(train_, "n1", steps);
  EXPECT_EQ(steps.front().volume_version, "7");
  put_claim(claim("more", "local", "5Gi"));
  const Pod second = pod("second", {{"more"}});
  EXPECT_EQ(plan(second, n1_), "more=big");
  volumes_.release(train_);
  EXPECT_EQ(plan(second, n1_), "more=right");
}

TEST_F(KubeVolumes, WhoSharesAClaimHasItWhereItIsBeingBound) {
  put_claim(claim("data", "local"));
  put_claim(claim("scratch", "made"));
  put_volume(volume("v1", "local", "n1"));
  put_volume(volume("v2", "local", "n2"));
  const Pod second = pod("second", {{"data"}});
  volumes_.reserve(train_, "n2", *volumes_.plan(train_, n2_));
  EXPECT_EQ(plan(second, n2_), "data=v2");
  EXPECT_EQ(refusal(second, n1_), kNobodyHas);
  volumes_.reserve(second, "n2", *volumes_.plan(second, n2_));
  volumes_.release(train_);
  EXPECT_EQ(plan(train_, n1_), "none") << "it is still bound for the other";
  volumes_.release(second);
  EXPECT_EQ(plan(train_, n1_), "data=v1");
  const Pod third = pod("third", {{"scratch"}});
  volumes_.reserve(third, "n1", *volumes_.plan(third, n1_));
  EXPECT_EQ(plan(pod("fourth", {{"scratch"}}), n2_), "none");
  EXPECT_EQ(plan(pod("fourth", {{"scratch"}}), n1_), "scratch");
}

TEST_F(KubeVolumes, OneSetAsideForAClaimIsItsOwn) {
  put_claim(claim("data", "local"));
  put_volume(volume("free", "local", "n1", "1Gi"));
  Json aside = volume("aside", "local", "n2");
  aside["spec"]["claimRef"] = {{"namespace", "default"}, {"name", "data"}, {"uid", "data"}};
  put_volume(aside);
  EXPECT_EQ(plan(train_, n1_), "none");
  EXPECT_EQ(plan(train_, n2_), "data=aside");
  aside["spec"]["claimRef"]["uid"] = "one before";
  put_volume(aside);
  EXPECT_EQ(plan(train_, n1_), "data=free");
}

TEST_F(KubeVolumes, ASelectorAndTheModesOfAccessAreMet) {
  Json wants = claim("data", "local");
  wants["spec"]["selector"]["matchLabels"]["disk"] = "ssd";
  put_claim(wants);
  put_volume(volume("any", "local", "n1"));
  EXPECT_EQ(plan(train_, n1_), "none");
  Json ssd = volume("ssd", "local", "n1");
  ssd["metadata"]["labels"]["disk"] = "ssd";
  put_volume(ssd);
  EXPECT_EQ(plan(train_, n1_), "data=ssd");
  wants["spec"]["accessModes"] = {"ReadOnlyMany"};
  put_claim(wants);
  EXPECT_EQ(plan(train_, n1_), "none");
}

TEST_F(KubeVolumes, TwoClaimsDoNotHaveOneVolume) {
  put_claim(claim("data", "local"));
  put_claim(claim("log", "local"));
  put_volume(volume("v1", "local", "n1"));
  const Pod both = pod("both", {{"data"}, {"log"}});
  EXPECT_EQ(refusal(both, n1_), kNobodyHas) << "each of them could, but not both";
  EXPECT_EQ(plan(both, n1_), "none");
  put_volume(volume("v2", "local", "n1"));
  EXPECT_EQ(refusal(both, n1_), "");
  EXPECT_EQ(plan(both, n1_), "data=v1 log=v2");
}

TEST_F(KubeVolumes, AVolumeHasTheAttributesThatItsClaimAsksFor) {
  Json fast = claim("data", "local");
  fast["spec"]["volumeAttributesClassName"] = "fast";
  put_claim(fast);
  Json slow = volume("v1", "local");
  put_volume(slow);
  EXPECT_EQ(plan(train_, n1_), "none");
  slow["spec"]["volumeAttributesClassName"] = "fast";
  put_volume(slow);
  EXPECT_EQ(plan(train_, n1_), "data=v1");
}

TEST_F(KubeVolumes, OneIsMadeWhereItsClassSays) {
  put_claim(claim("data", "made"));
  EXPECT_EQ(plan(train_, n2_), "data");
  Json limited = storage_class("made", "example.com/maker");
  limited["allowedTopologies"] = Json::parse(
      R"([{"matchLabelExpressions":[{"key":"topology.kubernetes.io/zone","values":["a"]}]}])");
  put_class(limited);
  EXPECT_EQ(plan(train_, n1_), "data");
  EXPECT_EQ(refusal(train_, n2_), kNobodyHas);
  put_volume(volume("there", "made", "n2"));
  EXPECT_EQ(plan(train_, n2_), "data=there");
  Json begun = claim("data", "made");
  begun["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = "n1";
  put_claim(begun);
  EXPECT_EQ(plan(train_, n1_), "data");
  EXPECT_EQ(refusal(train_, n2_), kNobodyHas) << "it is being made elsewhere";
}

TEST_F(KubeVolumes, AReadWriteOncePodClaimIsThatOfOnePod) {
  Json one = claim("data", "made");
  one["spec"]["accessModes"] = {"ReadWriteOncePod"};
  put_claim(bound(one, "v1"));
  Json single = volume("v1", "made");
  put_volume(single);
  const Pod second = pod("second", {{"data"}});
  (void)is_news_for(second);
  volumes_.use(train_);
  EXPECT_EQ(refusal(train_, n1_), "");
  EXPECT_TRUE(refusal(second, n1_).contains("ReadWriteOncePod"));
  EXPECT_TRUE(is_news_for(second));
  volumes_.release(train_);
  EXPECT_TRUE(is_news_for(second));
  EXPECT_EQ(refusal(second, n1_), "");
}

TEST_F(KubeVolumes, UntilTheyAreKnownPodsWithClaimsWait) {
  const Volumes fresh;
  EXPECT_EQ(fresh.storage_of(train_).trouble, "its PersistentVolumeClaims cannot be read yet");
  EXPECT_EQ(fresh.storage_of(pod("free", {})), Storage{});
  Volumes ignoring;
  ignoring.ignore();
  EXPECT_EQ(ignoring.storage_of(train_), Storage{});
}

TEST_F(KubeVolumes, OnlyWhatIsOtherIsNewsAndOnlyForThoseThatItConcerns) {
  put_claim(claim("data", "local"));
  put_claim(claim("disk", "made"));
  put_claim(bound(claim("old", "local"), "v0"));
  const Pod made = pod("made", {{"disk"}});
  const Pod old = pod("old", {{"old"}});
  EXPECT_TRUE(is_news_for(train_));
  EXPECT_FALSE(is_news_for(train_)) << "it was asked";
  Json one = volume("v1", "local", "n1");
  put_volume(one);
  const VolumeNews news = volumes_.take_news();
  EXPECT_TRUE(volumes_.concerns(news, train_));
  EXPECT_FALSE(volumes_.concerns(news, made));
  EXPECT_FALSE(volumes_.concerns(news, old));
  one["metadata"]["resourceVersion"] = "8";
  put_volume(one);
  EXPECT_TRUE(volumes_.take_news().is_empty()) << "it was written, and is what it was";
  EXPECT_EQ(volumes_.plan(train_, n1_)->front().volume_version, "8");
  volumes_.volume_gone("one before");
  EXPECT_TRUE(volumes_.take_news().is_empty());
  put_volume(volume("v0", "local", "n1"));
  EXPECT_TRUE(is_news_for(old));
  volumes_.volume_gone("v1");
  EXPECT_TRUE(is_news_for(train_));
}

TEST_F(KubeVolumes, OneThatIsTakenIsNewsForThoseThatCouldHaveHadIt) {
  put_claim(claim("data", "local"));
  put_claim(claim("other", "local"));
  put_claim(claim("disk", "made"));
  put_volume(volume("v1", "local", "n1"));
  const Pod other = pod("other", {{"other"}});
  (void)is_news_for(other);
  const auto steps = volumes_.plan(train_, n1_);
  volumes_.use(train_);
  volumes_.reserve(train_, "n1", *steps);
  VolumeNews news = volumes_.take_news();
  EXPECT_TRUE(volumes_.concerns(news, other));
  EXPECT_FALSE(volumes_.concerns(news, pod("made", {{"disk"}})));
  EXPECT_EQ(refusal(other, n1_), kNobodyHas);
  // That the cluster says so, too, changes nothing for them.
  Json set_aside = volume("v1", "local", "n1");
  set_aside["spec"]["claimRef"] = {{"namespace", "default"}, {"name", "data"}, {"uid", "data"}};
  put_volume(set_aside);
  put_claim(bound(claim("data", "local"), "v1"));
  EXPECT_FALSE(is_news_for(other));
  volumes_.release(train_);
  EXPECT_EQ(refusal(other, n1_), kNobodyHas);
}

TEST_F(KubeVolumes, OldLabelsOfZonesAreThoseOfNewNodes) {
  put_claim(bound(claim("data", "made"), "v1"));
  Json of_zone = volume("v1", "made");
  of_zone["metadata"]["labels"]["failure-domain.beta.kubernetes.io/zone"] = "a";
  put_volume(of_zone);
  EXPECT_EQ(refusal(train_, n1_), "");
  EXPECT_EQ(refusal(train_, n2_), "node(s) had no available volume zone");
  EXPECT_EQ(refusal(train_, node("n3")), "") << "which is in none";
  Node old = node("n4", "a");
  old.labels["failure-domain.beta.kubernetes.io/zone"] = "b";
  EXPECT_EQ(refusal(train_, old), "node(s) had no available volume zone") << "its own comes first";
}

}  // namespace
}  // namespace gflow::kube
