// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/container_files.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "os/file.h"
#include "share/account.h"

namespace gflow::deviceplugin {
namespace {

using Json = nlohmann::json;

class Files : public testing::Test {
 protected:
  Files() {
    EXPECT_TRUE(os::make_directories(root_ + "/libexec"));
    EXPECT_TRUE(os::write_file(root_ + "/libexec/libgflow-share.so", "\177ELF and more", 0755));
    ::setenv("GFLOW_LIBEXEC", (root_ + "/libexec").c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    EXPECT_TRUE(files_.open(trouble_));
    machine_.source = "sim:1xH100";
    machine_.devices = {{.index = 0, .vendor = "nvidia", .uuid = "GPU-a"}};
    half_.request.mode = GpuMode::Fraction;
    half_.request.share = Share{5000};
    half_.devices = {{.index = 0,
                      .uuid = "GPU-a",
                      .vendor = "nvidia",
                      .share = Share{5000},
                      .memory = Memory::gib(8)}};
  }
  ~Files() override {
    ::unsetenv("GFLOW_LIBEXEC");  // NOLINT(concurrency-mt-unsafe)
    (void)os::remove_tree(root_);
  }
  [[nodiscard]] std::string own(const std::string& name) const {
    return places_.state + "/containers/k/" + name;
  }
  [[nodiscard]] std::string specification() const { return places_.cdi + "/" + cdi_file_name("k"); }

  const std::string root_ = testing::TempDir() + "/gflow-files-" + std::to_string(::getpid());
  const Places places_{.state = root_ + "/state",
                       .library = root_ + "/library",
                       .cdi = root_ + "/cdi",
                       .vendor_cdi = root_ + "/etc"};
  const ContainerName main_{"default", "train", "main"};
  ContainerFiles files_{places_};
  std::string trouble_;
  Machine machine_;
  Grant half_{.pod = "default/train", .uid = "u1", .container = "main"};
};

std::size_t size_of(const std::string& path) {
  struct stat facts{};
  return ::stat(path.c_str(), &facts) == 0 ? static_cast<std::size_t>(facts.st_size) : SIZE_MAX;
}

TEST_F(Files, OneWithAPartHasItsAccountItsTurnAndTheLibrary) {
  EXPECT_EQ(trouble_, "");
  ASSERT_TRUE(files_.write("k", half_, machine_));
  const Json made = Json::parse(os::read_file(specification()).value());
  const Json& edits = made.at("devices")[0].at("containerEdits");
  std::vector<std::string> mounts;
  for (const Json& one : edits.at("mounts")) mounts.push_back(one.at("containerPath"));
  EXPECT_EQ(mounts,
            (std::vector<std::string>{"/run/gflow-share/turn",
                                      "/run/gflow-share/account",
                                      "/run/gflow-share/libgflow-share.so",
                                      "/etc/ld.so.preload"}));
  EXPECT_EQ(size_of(own("account")), sizeof(share::Account));
  Grant whole = half_;
  whole.request = {};
  whole.devices[0].share = Share::whole();
  ASSERT_TRUE(files_.write("k", whole, machine_));
  EXPECT_EQ(size_of(own("account")), SIZE_MAX);
}

TEST_F(Files, WhatWasWrittenLastIsOneContainersOfOnePod) {
  EXPECT_FALSE(files_.renew("k", main_, "u1").value());
  ASSERT_TRUE(files_.write("k", half_, machine_));
  ASSERT_TRUE(os::write_file(own("account"), "spoiled"));
  EXPECT_FALSE(files_.renew("k", main_, "u2").value()) << "another pod of that name";
  EXPECT_FALSE(files_.renew("k", {"default", "train", "side"}, "u1").value());
  EXPECT_TRUE(files_.renew("k", main_, "u1").value());
  EXPECT_EQ(os::read_file(own("account")).value(), os::read_file(own("fresh")).value());
  files_.forget("k");
  EXPECT_FALSE(os::exists(specification()));
}

TEST_F(Files, WhatIsOfOthersGoesAndWhatContainersMadeLargerIsCut) {
  ASSERT_TRUE(files_.write("k", half_, machine_));
  ASSERT_EQ(::truncate(own("account").c_str(), 1 << 20), 0);
  ASSERT_TRUE(os::write_file(own("turn"), "all that fits"));
  ASSERT_TRUE(os::make_directories(places_.cdi + "/" + cdi_file_name("other")));
  ASSERT_TRUE(os::write_file(specification() + ".new", "cut sh"));
  ASSERT_TRUE(os::write_file(places_.cdi + "/nvidia.json", "{}"));
  ASSERT_TRUE(files_.keep_only({"k"}));
  EXPECT_EQ(size_of(own("account")), sizeof(share::Account));
  EXPECT_EQ(size_of(own("turn")), 0U);
  EXPECT_EQ(os::names_in(places_.cdi)->size(), 2U);
  ASSERT_TRUE(files_.keep_only({}));
  EXPECT_FALSE(os::exists(own("account")));
  EXPECT_FALSE(os::exists(places_.state + "/turn.GPU-a"));
  EXPECT_EQ(os::names_in(places_.cdi).value(), (std::vector<std::string>{"nvidia.json"}));
}

TEST_F(Files, AFolderThatWentIsMadeAgain) {
  ASSERT_TRUE(os::remove_tree(places_.cdi));
  EXPECT_TRUE(files_.write("k", half_, machine_));
}

}  // namespace
}  // namespace gflow::deviceplugin
