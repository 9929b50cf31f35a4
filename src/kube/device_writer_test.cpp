// SPDX-License-Identifier: Apache-2.0
#include "kube/device_writer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace gflow::kube {
namespace {

using Document = nlohmann::json;
using Ends = DevicesWritten::How;

/// Claims as an API server has them, which answers as a test says.
class KubeDeviceWriter : public testing::Test {
 protected:
  void SetUp() override {
    for (const std::string name : {"one", "two"}) {
      claims[name] = {{"metadata", {{"uid", "u-" + name}, {"name", name}}},
                      {"status", Document::object()}};
      bind.devices.push_back({name, "u-" + name, given(name, "gpu-" + name)});
    }
  }

  static DeviceAllocation given(const std::string& request, const std::string& device) {
    DeviceAllocation made;
    made.devices.push_back({.request = request, .id = {"d", "p", device}});
    made.text = allocation(request, device).dump();
    return made;
  }
  static Document allocation(const std::string& request, const std::string& device) {
    const Document result = {
        {"request", request}, {"driver", "d"}, {"pool", "p"}, {"device", device}};
    return {{"devices", {{"results", Document::array({result})}}}};
  }

  Result<Answer> answer(const Request& request) {
    asked.push_back(request.method);
    limits.insert(request.limit);
    std::string path = request.path.substr(request.path.find("resourceclaims/") + 15);
    const bool is_status = path.ends_with("/status");
    if (is_status) path.resize(path.size() - 7);
    const std::string key = request.method + (is_status ? "/status " : " ") + path;
    int status = 200;
    if (auto& after = answers[key]; !after.empty()) {
      status = after.front();
      after.erase(after.begin());
    }
    if (status == 0) return fail(Code::Timeout, "nobody answers");
    if (status != 200) return Answer{.status = status, .body = "{}"};
    Document& claim = claims.at(path);
    if (request.method == "PUT") claim = Document::parse(request.body);
    if (request.method == "PATCH") claim["status"]["reservedFor"] = others[path];
    return Answer{.status = 200, .body = claim.dump()};
  }

  DevicesWritten write() { return write_devices(asks(), bind, lease); }
  DevicesWritten give_back() { return give_back_devices(asks(), bind, lease); }
  Asks asks() {
    return [this](const Request& request) { return answer(request); };
  }
  [[nodiscard]] bool has(const std::string& name) const {
    return claims.at(name)["status"].contains("allocation");
  }

  Bind bind{.uid = "pod", .name_space = "default", .name = "pod", .node = "n"};
  std::map<std::string, Document> claims;
  std::map<std::string, std::vector<int>> answers;  ///< statuses to come; 0: none, then 200
  std::map<std::string, Document> others;           ///< who has it when the pod does not any more
  std::vector<std::string> asked;
  std::set<std::chrono::milliseconds> limits;
  bool may_write = true;
  WriteLease lease{[this] { return may_write; }, std::chrono::milliseconds(700)};
};

TEST_F(KubeDeviceWriter, WritesEachClaimOnce) {
  EXPECT_EQ(write().how, Ends::All);
  EXPECT_TRUE(has("one") && has("two"));
  EXPECT_EQ(claims.at("one")["status"]["reservedFor"].size(), 1U);
  EXPECT_EQ(limits.size(), 1U) << "all of them within the lease";
  asked.clear();
  EXPECT_EQ(write().how, Ends::All);
  EXPECT_EQ(asked, (std::vector<std::string>{"GET", "GET"})) << "it is as it should be";
}

TEST_F(KubeDeviceWriter, ReadsAgainWhatSomebodyChanged) {
  answers["PUT/status one"] = {409, 409};
  EXPECT_EQ(write().how, Ends::All);
  EXPECT_TRUE(has("one"));
  answers["PUT/status one"] = {409, 409, 409, 409, 409};
  claims.at("one")["status"] = Document::object();
  const DevicesWritten refused = write();
  EXPECT_EQ(refused.how, Ends::Refused);
  EXPECT_EQ(refused.why, "resourceclaim one is changed all the time");
}

TEST_F(KubeDeviceWriter, KnowsNotWhatNobodyAnswered) {
  answers["GET one"] = {0};
  EXPECT_EQ(write().how, Ends::Unknown);
  EXPECT_EQ(write().how, Ends::All) << "asked again";
  claims.at("one")["status"] = Document::object();
  for (const int status : {0, 503}) {
    answers["PUT/status one"] = {status};
    const DevicesWritten unknown = write();
    EXPECT_EQ(unknown.how, Ends::Unknown);
    EXPECT_TRUE(unknown.may_be_written);
  }
}

TEST_F(KubeDeviceWriter, SaysThatSomethingIsWrittenWhereALaterClaimIsRefused) {
  claims.at("two")["status"]["allocation"] = allocation("two", "another");
  const DevicesWritten refused = write();
  EXPECT_EQ(refused.how, Ends::Refused);
  EXPECT_EQ(refused.why, "resourceclaim two was given other devices");
  EXPECT_TRUE(refused.may_be_written) << "the first one is";
  EXPECT_EQ(give_back().how, Ends::All);
  EXPECT_FALSE(has("one"));
  claims.at("one")["metadata"]["uid"] = "another";
  const DevicesWritten none = write();
  EXPECT_EQ(none.how, Ends::Refused);
  EXPECT_FALSE(none.may_be_written);
}

TEST_F(KubeDeviceWriter, WritesNothingWithoutTheLease) {
  may_write = false;
  EXPECT_EQ(write().how, Ends::Ended);
  EXPECT_EQ(give_back().how, Ends::Ended);
  EXPECT_EQ(asked, (std::vector<std::string>{"GET"}));
}

TEST_F(KubeDeviceWriter, GivesBackWhatNobodyElseHas) {
  EXPECT_EQ(write().how, Ends::All);
  others["one"] = Document::array({{{"uid", "other"}}});
  answers["PUT/status two"] = {0};
  EXPECT_EQ(give_back().how, Ends::Unknown);
  EXPECT_TRUE(has("one")) << "another pod has it";
  EXPECT_TRUE(has("two"));
  EXPECT_EQ(give_back().how, Ends::All);
  EXPECT_TRUE(has("one"));
  EXPECT_FALSE(has("two"));
  answers["PATCH/status one"] = {403};
  EXPECT_EQ(give_back().how, Ends::Refused);
}

}  // namespace
}  // namespace gflow::kube
