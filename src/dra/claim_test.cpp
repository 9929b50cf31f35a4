// SPDX-License-Identifier: Apache-2.0
#include "dra/claim.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "dra/pod_claims.h"

namespace gflow::dra {
namespace {

using Json = nlohmann::json;

Here here() {
  Here made{.node = "n1", .machine = {.source = "sim:2xH100"}};
  for (int i = 0; i < 2; ++i) {
    made.machine.devices.push_back({.index = i,
                                    .vendor = "nvidia",
                                    .uuid = "GPU-" + std::to_string(i),
                                    .memory_total = Memory::gib(80),
                                    .usable = true});
  }
  return made;
}

/// One device of a request; `consumed`: "memory share", "" of one that is not given out in parts.
Json result(const std::string& request, int gpu, const std::string& consumed = "") {
  Json made = {{"request", request},
               {"driver", "gpu.gflow"},
               {"pool", "n1"},
               {"device", "gpu-" + std::to_string(gpu)}};
  const std::size_t blank = consumed.find(' ');
  if (blank != std::string::npos) {
    made["shareID"] = "s" + std::to_string(gpu);
    made["consumedCapacity"] = {{"memory", consumed.substr(0, blank)},
                                {"share", consumed.substr(blank + 1)}};
  }
  return made;
}

Json claim(const Json& results, const Json& config = Json::array()) {
  return {{"metadata", {{"namespace", "default"}, {"name", "train"}, {"uid", "u1"}}},
          {"status", {{"allocation", {{"devices", {{"results", results}, {"config", config}}}}}}}};
}

Json part_config(const std::string& limit) {
  return {{{"source", "FromClaim"},
           {"requests", Json::array()},
           {"opaque",
            {{"driver", "gpu.gflow"},
             {"parameters",
              {{"apiVersion", "gpu.gflow/v1"}, {"kind", "Part"}, {"shareLimit", limit}}}}}}};
}

std::string why_not(const Json& of) {
  const auto grants = grants_of(of, here());
  return grants ? "" : grants.error().message;
}

TEST(Claim, WhatIsAllocatedIsGivenByRequest) {
  const auto grants =
      grants_of(claim(Json::array({result("a", 1), result("b/small", 0, "8Gi 500m")})), here())
          .value();
  ASSERT_EQ(grants.size(), 2U);
  EXPECT_EQ(grants[0].request, "a");
  EXPECT_FALSE(grants[0].is_part());
  EXPECT_EQ(grants[0].grant.request, Request{.gpus = 1});
  EXPECT_EQ(grants[0].grant.devices[0].uuid, "GPU-1");
  EXPECT_EQ(grants[1].request, "b") << "what a container names";
  EXPECT_TRUE(grants[1].is_part());
  EXPECT_EQ(grants[1].devices, (std::vector<ClaimedDevice>{{"gpu-0", "s0"}}));
  EXPECT_EQ(grants[1].grant.devices[0].share, Share::percent(50));
  EXPECT_EQ(grants[1].grant.devices[0].memory, Memory::gib(8));
  EXPECT_EQ(grants[1].grant.request.gpu_memory, Memory::gib(8));
  EXPECT_EQ(grants[1].grant.owner, (deviceplugin::Owner{"default/train", "b", "u1"}));
}

TEST(Claim, AllOfTheTimeIsTheWholeWhateverItsMemory) {
  const auto grants = grants_of(claim(Json::array({result("a", 0, "8Gi 1")})), here()).value();
  EXPECT_FALSE(grants[0].is_part());
}

TEST(Claim, WhoOnlyLooksIsHeldToNothing) {
  Json looks = result("a", 0, "8Gi 500m");
  looks["adminAccess"] = true;
  Here broken = here();
  broken.machine.devices[0].usable = false;
  const auto grants = grants_of(claim(Json::array({looks})), broken).value();
  EXPECT_FALSE(grants[0].is_part());
  EXPECT_TRUE(check_usable(grants[0], broken.machine));
}

TEST(Claim, ItsConfigurationSaysUpToWhichShareItMayGo) {
  const Json half = result("a", 0, "8Gi 0.3");
  const auto limit = [&half](const Json& config) {
    return grants_of(claim(Json::array({half}), config), here())
        .value()[0]
        .grant.devices[0]
        .share_limit;
  };
  EXPECT_EQ(limit(Json::array()), Share{});
  EXPECT_EQ(limit(part_config("1")), Share::whole());
  EXPECT_EQ(limit(part_config("500m")), Share::percent(50));
  Json both = part_config("1");
  both.push_back(part_config("0.6")[0]);
  EXPECT_EQ(limit(both), Share::percent(60)) << "of the class, then of the claim";
  both[1]["requests"] = {"a/other", "other"};
  EXPECT_EQ(limit(both), Share::whole());
  both[0]["opaque"]["driver"] = "gpu.nvidia.com";
  EXPECT_EQ(limit(both), Share{});
}

TEST(Claim, WhatCannotBeGivenIsRefusedWithTheReason) {
  const Json half = result("a", 0, "8Gi 500m");
  EXPECT_NE(why_not(claim(Json::array({half}), part_config("0.2")))
                .find("0.2 of its configuration is less than its share 0.5"),
            std::string::npos);
  Json config = part_config("2");
  EXPECT_NE(why_not(claim(Json::array({half}), config)).find("at most 1"), std::string::npos);
  config = part_config("x");
  EXPECT_NE(why_not(claim(Json::array({half}), config)).find("'x'"), std::string::npos);
  config[0]["opaque"]["parameters"] = {
      {"apiVersion", "gpu.gflow/v1"}, {"kind", "Part"}, {"shareLimt", "1"}};
  EXPECT_NE(why_not(claim(Json::array({half}), config)).find("'shareLimt'"), std::string::npos);
  config[0]["opaque"]["parameters"] = {{"apiVersion", "x/v1"}, {"kind", "GpuConfig"}};
  EXPECT_NE(why_not(claim(Json::array({half}), config)).find("'GpuConfig'"), std::string::npos);
  EXPECT_NE(why_not(claim(Json::array({result("a", 7)}))).find("gpu-7 is not in this machine"),
            std::string::npos);
  EXPECT_NE(why_not(claim(Json::array({result("a", 0, "lots 500m")}))).find("'lots'"),
            std::string::npos);
  EXPECT_NE(why_not(claim(Json::array())).find("no GPU of the node n1"), std::string::npos);
  Json elsewhere = result("a", 0);
  elsewhere["pool"] = "n2";
  EXPECT_FALSE(has_devices_of(claim(Json::array({elsewhere})), "n1"));
  EXPECT_TRUE(has_devices_of(claim(Json::array({elsewhere, half})), "n1"));
  EXPECT_FALSE(has_devices_of(Json::parse(R"({"status": {}})"), "n1"));
  EXPECT_NE(why_not(claim(Json::array({elsewhere}))).find("no GPU of the node n1"),
            std::string::npos);
  EXPECT_NE(why_not(Json::parse(R"({"status": 3})")).find("no GPU of the node n1"),
            std::string::npos);
  EXPECT_NE(why_not(claim(Json::array({result("a", 0, "0 500m")}))).find("no container is held"),
            std::string::npos);
  Here others = here();
  others.machine.devices[0].vendor = "amd";
  EXPECT_FALSE(grants_of(claim(Json::array({half})), others));
  EXPECT_TRUE(grants_of(claim(Json::array({result("a", 0)})), others));
  Here broken = here();
  broken.machine.devices[0].usable = false;
  broken.machine.devices[0].trouble = "it fell off the bus";
  const auto grants = grants_of(claim(Json::array({half})), broken).value();
  EXPECT_NE(check_usable(grants[0], broken.machine).error().message.find("it fell off the bus"),
            std::string::npos);
}

/// A pod with these containers, each by the claims that it names: "small" or "small:request".
Json pod(const std::vector<std::vector<std::string>>& containers) {
  Json made = Json::parse(R"({"spec": {
      "resourceClaims": [{"name": "small", "resourceClaimName": "s"},
                         {"name": "large", "resourceClaimTemplateName": "t"}],
      "containers": []},
    "status": {"resourceClaimStatuses": [{"name": "large", "resourceClaimName": "l"}]}})");
  for (const auto& names : containers) {
    Json claims = Json::array();
    for (const std::string& name : names) {
      const std::size_t colon = name.find(':');
      Json one = {{"name", name.substr(0, colon)}};
      if (colon != std::string::npos) one["request"] = name.substr(colon + 1);
      claims.push_back(one);
    }
    made["spec"]["containers"].push_back(
        {{"name", fmt::format("c{}", made["spec"]["containers"].size())},
         {"resources", {{"claims", claims}}}});
  }
  return made;
}

TEST(PodClaims, AContainerHasPartsByOneRequest) {
  const PartsOf parts_of = [](const std::string& name) -> Result<std::set<std::string>> {
    if (name == "s") return std::set<std::string>{"a", "b"};
    if (name == "l") return std::set<std::string>{"main"};
    return fail(Code::Failure, "another claim is asked for: " + name);
  };
  const std::vector<std::pair<std::vector<std::vector<std::string>>, bool>> cases = {
      {{}, true},
      {{{"small:a"}}, true},
      {{{"small:a"}, {"small:b"}, {"large"}}, true},
      {{{"small:a", "small:a"}}, true},
      {{{"small"}}, false},
      {{{"small:a", "large"}}, false},
      {{{"large"}, {"small:a", "large:main"}}, false},
      {{{"small:other", "large"}}, true},
      {{{"unknown"}}, true},
  };
  for (const auto& [containers, is_fine] : cases) {
    const Json checked = pod(containers);
    EXPECT_EQ(check_one_part_each(checked, parts_of).has_value(), is_fine) << checked.dump();
  }
  const auto why = check_one_part_each(pod({{}, {"small"}}), parts_of);
  EXPECT_NE(why.error().message.find("container c1"), std::string::npos) << why.error().message;
  EXPECT_NE(why.error().message.find("'a' of claim s, 'b' of claim s"), std::string::npos);
}

}  // namespace
}  // namespace gflow::dra
