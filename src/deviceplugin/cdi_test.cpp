// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/cdi.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "os/file.h"

namespace gflow::deviceplugin {
namespace {

using Json = nlohmann::json;

/// As nvidia-ctk writes them, in short.
constexpr const char* kNvidia = R"(---
cdiVersion: 0.5.0
kind: nvidia.com/gpu
containerEdits:
  env:
    - NVIDIA_VISIBLE_DEVICES=void
  deviceNodes:
    - path: /dev/nvidiactl
  hooks:
    - hookName: createContainer
      path: /usr/bin/nvidia-cdi-hook
      args: [nvidia-cdi-hook, update-ldcache, "true", "0"]
  mounts:
    - hostPath: /usr/lib/libcuda.so.580
      containerPath: /usr/lib/libcuda.so.580
      options: [ro, nosuid]
devices:
  - name: GPU-a
    containerEdits:
      deviceNodes:
        - path: /dev/nvidia0
          major: 195
          fileMode: 0666
  - name: "1"
    containerEdits:
      deviceNodes:
        - path: /dev/nvidia1
          major: 195
)";

class Cdi : public testing::Test {
 protected:
  Cdi() {
    EXPECT_TRUE(os::make_directories(etc()));
    EXPECT_TRUE(os::make_directories(run()));
  }
  ~Cdi() override { (void)os::remove_tree(root_); }
  [[nodiscard]] std::string etc() const { return root_ + "/etc"; }
  [[nodiscard]] std::string run() const { return root_ + "/run"; }
  [[nodiscard]] Result<Edits> edits(const std::vector<const Device*>& devices) const {
    return vendor_edits({etc(), run(), root_ + "/none"}, "nvidia.com/gpu", devices);
  }

  const Device first{.index = 0, .vendor = "nvidia", .uuid = "GPU-a"};
  const Device second{.index = 1, .vendor = "nvidia", .uuid = "GPU-b"};

 private:
  std::string root_ = testing::TempDir() + "/gflow-cdi-" + std::to_string(::getpid());
};

std::vector<std::string> nodes_of(const Edits& edits) {
  std::vector<std::string> paths;
  for (const Json& one : edits.edits.at("deviceNodes")) paths.push_back(one.at("path"));
  return paths;
}

TEST_F(Cdi, DevicesAreThoseOfTheVendorByUuidOrIndexWithWhatAllHave) {
  ASSERT_TRUE(os::write_file(etc() + "/nvidia.yaml", kNvidia));
  const auto both = edits({&first, &second});
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ(nodes_of(*both),
            (std::vector<std::string>{"/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia1"}));
  EXPECT_EQ(both->edits.at("deviceNodes")[1].at("major"), 195);
  EXPECT_EQ(both->edits.at("deviceNodes")[1].at("fileMode"), 438);
  EXPECT_EQ(both->edits.at("hooks")[0].at("args")[2], "true");
  EXPECT_EQ(both->edits.at("hooks")[0].at("args")[3], "0");
  EXPECT_EQ(both->edits.at("mounts")[0].at("options"), Json({"ro", "nosuid"}));
  EXPECT_EQ(nodes_of(*edits({&second})),
            (std::vector<std::string>{"/dev/nvidiactl", "/dev/nvidia1"}));
}

TEST_F(Cdi, TheLaterDirectoryWinsAndFilesOfOthersAreNotRead) {
  ASSERT_TRUE(os::write_file(etc() + "/nvidia.yaml", kNvidia));
  ASSERT_TRUE(os::write_file(run() + "/amd.json",
                             R"({"kind": "amd.com/gpu", "devices": [{"name": "GPU-a"}]})"));
  ASSERT_TRUE(os::write_file(run() + "/" + kClaims.file_name("k"), "not looked at"));
  ASSERT_TRUE(os::write_file(run() + "/x.tmp", "not looked at"));
  ASSERT_TRUE(os::write_file(
      run() + "/newer.json",
      R"({"cdiVersion": "0.10.0", "kind": "nvidia.com/gpu", "devices": [{"name": "GPU-a", "containerEdits": {"deviceNodes": [{"path": "/dev/x"}]}}]})"));
  const auto found = edits({&first});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(nodes_of(*found), (std::vector<std::string>{"/dev/x"}));
  EXPECT_EQ(found->version, "0.10.0");
}

TEST_F(Cdi, WhatIsMissingOrBrokenIsSaidWithWhatHelps) {
  const auto none = edits({&first});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message,
            "no CDI specification of nvidia.com/gpu on this node names the GPU GPU-a (0); "
            "'nvidia-ctk cdi generate --output /var/run/cdi/nvidia.yaml' on the node makes one");
  ASSERT_TRUE(os::write_file(run() + "/a.json", "{"));
  const auto broken = edits({&first});
  ASSERT_FALSE(broken);
  EXPECT_TRUE(broken.error().message.ends_with("/run/a.json' is no JSON"))
      << broken.error().message;
  ASSERT_TRUE(os::write_file(etc() + "/nvidia.yaml", kNvidia));
  EXPECT_TRUE(edits({&first})) << "another's broken file is not its";
}

TEST_F(Cdi, ASpecificationHasOneDeviceOfItsKey) {
  Edits edits;
  add_edits(edits, {"0.6.0", {{"env", {"A=1"}}}});
  add_edits(edits, {"0.5.0", {{"env", {"B=2"}}, {"mounts", Json::array()}}});
  const Json made = Json::parse(cdi_text(kAllocations, "0123", edits));
  EXPECT_EQ(made.at("cdiVersion"), "0.6.0");
  EXPECT_EQ(made.at("kind").get<std::string>() + "=" +
                made.at("devices")[0].at("name").get<std::string>(),
            kAllocations.device("0123"));
  EXPECT_EQ(made.at("devices")[0].at("containerEdits").at("env"), Json({"A=1", "B=2"}));
  EXPECT_EQ(kAllocations.key_of_file(kAllocations.file_name("0123")), "0123");
  EXPECT_EQ(kAllocations.key_of_file(kAllocations.file_name("0123") + ".new"), "0123");
  EXPECT_EQ(kAllocations.key_of_file("nvidia.json"), "");
}

}  // namespace
}  // namespace gflow::deviceplugin
