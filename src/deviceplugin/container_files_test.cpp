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
    EXPECT_TRUE(os::make_directories(root + "/libexec"));
    EXPECT_TRUE(os::write_file(root + "/libexec/libgflow-share.so", "\177ELF and more", 0755));
    ::setenv("GFLOW_LIBEXEC", (root + "/libexec").c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    EXPECT_TRUE(files.open(trouble));
    machine.source = "sim:1xH100";
    machine.devices = {{.index = 0, .vendor = "nvidia", .uuid = "GPU-a"}};
    half.request.mode = GpuMode::Fraction;
    half.request.share = Share{5000};
    half.devices = {{.index = 0,
                     .uuid = "GPU-a",
                     .vendor = "nvidia",
                     .share = Share{5000},
                     .memory = Memory::gib(8)}};
  }
  ~Files() override {
    ::unsetenv("GFLOW_LIBEXEC");  // NOLINT(concurrency-mt-unsafe)
    (void)os::remove_tree(root);
  }
  [[nodiscard]] std::string own(const std::string& name) const {
    return places.state + "/containers/k/" + name;
  }
  [[nodiscard]] std::string specification() const {
    return places.cdi + "/" + kAllocations.file_name("k");
  }

  const std::string root = testing::TempDir() + "/gflow-files-" + std::to_string(::getpid());
  const Places places{.state = root + "/state",
                      .library = root + "/library",
                      .cdi = root + "/cdi",
                      .vendor_cdi = root + "/etc"};
  const Owner main{"default/train", "main", "u1"};
  ContainerFiles files{places, kAllocations};
  std::string trouble;
  Machine machine;
  Grant half{.owner = {"default/train", "main", "u1"}};
};

std::size_t size_of(const std::string& path) {
  struct stat facts{};
  return ::stat(path.c_str(), &facts) == 0 ? static_cast<std::size_t>(facts.st_size) : SIZE_MAX;
}

TEST_F(Files, OneWithAPartHasItsAccountItsTurnAndTheLibrary) {
  EXPECT_EQ(trouble, "");
  ASSERT_TRUE(files.write("k", half, machine));
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
  Grant whole = half;
  whole.request = {};
  whole.devices[0].share = Share::whole();
  ASSERT_TRUE(files.write("k", whole, machine));
  EXPECT_EQ(size_of(own("account")), SIZE_MAX);
}

TEST_F(Files, WhatWasWrittenLastIsOneContainersOfOnePod) {
  EXPECT_FALSE(files.renew("k", main).value());
  ASSERT_TRUE(files.write("k", half, machine));
  ASSERT_TRUE(os::write_file(own("account"), "spoiled"));
  EXPECT_FALSE(files.renew("k", {"default/train", "main", "u2"}).value())
      << "another pod of that name";
  EXPECT_FALSE(files.renew("k", {"default/train", "side", "u1"}).value());
  EXPECT_TRUE(files.renew("k", main).value());
  EXPECT_EQ(os::read_file(own("account")).value(), os::read_file(own("fresh")).value());
  files.forget("k");
  EXPECT_FALSE(os::exists(specification()));
}

TEST_F(Files, WhatIsOfOthersGoesAndWhatContainersMadeLargerIsCut) {
  ASSERT_TRUE(files.write("k", half, machine));
  ASSERT_EQ(::truncate(own("account").c_str(), 1 << 20), 0);
  ASSERT_TRUE(os::write_file(own("turn"), "all that fits"));
  ASSERT_TRUE(os::make_directories(places.cdi + "/" + kAllocations.file_name("other")));
  ASSERT_TRUE(os::write_file(specification() + ".new", "cut sh"));
  ASSERT_TRUE(os::write_file(places.cdi + "/nvidia.json", "{}"));
  ASSERT_TRUE(files.keep_only({"k"}));
  EXPECT_EQ(size_of(own("account")), sizeof(share::Account));
  EXPECT_EQ(size_of(own("turn")), 0U);
  EXPECT_EQ(os::names_in(places.cdi)->size(), 2U);
  ASSERT_TRUE(files.keep_only({}));
  EXPECT_FALSE(os::exists(own("account")));
  EXPECT_FALSE(os::exists(places.state + "/turn.GPU-a"));
  EXPECT_EQ(os::names_in(places.cdi).value(), (std::vector<std::string>{"nvidia.json"}));
}

TEST_F(Files, ASpecificationThatSomebodyRemovedComesBackUnlessItIsToBeForgotten) {
  ASSERT_TRUE(files.write("k", half, machine));
  const std::string text = os::read_file(specification()).value();
  ASSERT_TRUE(os::remove_tree(places.cdi));
  ASSERT_TRUE(files.keep_only({"k"}));
  EXPECT_EQ(os::read_file(specification()).value(), text);
  files.forget("k");
  ASSERT_TRUE(files.keep_only({"k"}));
  EXPECT_FALSE(os::exists(specification()));
}

TEST_F(Files, WrittenAgainTheAccountIsTheSameAndForAnotherGrantItIsNot) {
  ASSERT_TRUE(files.write("k", half, machine));
  EXPECT_TRUE(files.is_written("k", half));
  ASSERT_TRUE(os::write_file(own("account"), "counted"));
  ASSERT_TRUE(files.write_specification("k", half, machine));
  EXPECT_EQ(os::read_file(own("account")).value(), "counted");
  Grant other = half;
  other.devices[0].uuid = "GPU-b";
  EXPECT_FALSE(files.is_written("k", other));
  other = half;
  other.devices[0].memory = Memory::gib(9);
  EXPECT_FALSE(files.is_written("k", other));
  const Grant read = files.grants().value().at("k");
  EXPECT_EQ(read.owner, half.owner);
  ASSERT_EQ(read.devices.size(), 1U);
  EXPECT_EQ(read.devices[0].uuid, "GPU-a");
  EXPECT_EQ(read.devices[0].share, Share{5000});
  EXPECT_EQ(read.devices[0].memory, Memory::gib(8));
  ASSERT_TRUE(os::remove_tree(places.state));
  EXPECT_TRUE(files.grants().value().empty());
}

TEST_F(Files, AFolderThatWentIsMadeAgain) {
  ASSERT_TRUE(os::remove_tree(places.cdi));
  EXPECT_TRUE(files.write("k", half, machine));
}

}  // namespace
}  // namespace gflow::deviceplugin
