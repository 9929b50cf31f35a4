// SPDX-License-Identifier: Apache-2.0
#include "runner/gpu_share.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "share/account.h"

namespace gflow::runner {
namespace {

DeviceGrant grant(std::string uuid, std::string vendor, Memory memory) {
  return {.index = 0,
          .uuid = std::move(uuid),
          .vendor = std::move(vendor),
          .share = Share::percent(50),
          .memory = memory};
}

TEST(GpuShare, LimitsWhatCanBeLimited) {
  const DeviceGrant usual = grant("GPU-1", "nvidia", Memory::gib(8));
  const DeviceGrant second = grant("GPU-2", "nvidia", Memory::gib(4));
  const std::uint64_t gib = 1 << 30;
  const struct {
    const char* name;
    GpuMode mode;
    std::vector<DeviceGrant> devices;
    std::vector<share::DeviceLimit> limits;
  } kTable[] = {
      {"a part", GpuMode::Fraction, {usual}, {{"GPU-1", 8 * gib, 5'000, 5'000}}},
      {"turns", GpuMode::TimeSlice, {usual}, {{"GPU-1", 8 * gib, share::kWholeShare}}},
      {"parts of two",
       GpuMode::Fraction,
       {usual, second},
       {{"GPU-1", 8 * gib, 5'000, 5'000}, {"GPU-2", 4 * gib, 5'000, 5'000}}},
      {"the whole", GpuMode::Whole, {usual}, {}},
      {"no GPU", GpuMode::Fraction, {}, {}},
      {"no memory", GpuMode::Fraction, {grant("GPU-1", "nvidia", {})}, {}},
      {"no UUID", GpuMode::Fraction, {grant("", "nvidia", Memory::gib(8))}, {}},
      {"another vendor", GpuMode::Fraction, {grant("GPU-1", "amd", Memory::gib(8))}, {}},
      {"not for all", GpuMode::Fraction, {usual, grant("", "nvidia", Memory::gib(8))}, {}},
  };
  for (const auto& row : kTable) {
    LaunchOrder order;
    order.mode = row.mode;
    order.devices = row.devices;
    EXPECT_EQ(device_limits(order), row.limits) << row.name;
  }
}

TEST(GpuShare, WhoHasPartsOfDevicesTakesTurns) {
  using Turns = std::vector<TurnFile>;
  EXPECT_EQ(turns_of({{"GPU-1", 1, 5'000}}), (Turns{{"turn.GPU-1", "turn"}}));
  EXPECT_EQ(turns_of({{"GPU-1", 1, share::kWholeShare}}), Turns());
  EXPECT_EQ(turns_of({{"GPU-2", 1, 5'000}, {"GPU-1", 1, 5'000}}),
            (Turns{{"turn.GPU-2", "turn.0"}, {"turn.GPU-1", "turn.1"}}));
  EXPECT_EQ(turns_of({{"GPU-1", 1, 5'000}, {"GPU-2", 1, share::kWholeShare}}), Turns());
  EXPECT_EQ(turns_of({{"../etc/GPU-1", 1, 5'000}}), Turns());
  EXPECT_EQ(turns_of({}), Turns());
}

TEST(GpuShare, DoesNotLimitWhatOthersUse) {
  LaunchOrder order;
  order.mode = GpuMode::Fraction;
  order.devices = {grant("GPU-1", "nvidia", Memory::gib(8))};
  ASSERT_FALSE(device_limits(order).empty());
  order.only_holds = true;
  EXPECT_TRUE(device_limits(order).empty());
}

TEST(GpuShare, ComesBehindTheLibrariesOfTheUser) {
  using Environment = std::vector<std::string>;
  const std::string library = "/opt/libexec/libgflow-share.so";
  const struct {
    const char* name;
    Environment before;
    Environment with;
    Environment without;
  } kTable[] = {
      {"nothing",
       {"A=1"},
       {"A=1",
        "LD_PRELOAD=" + library,
        "GFLOW_SHARE_DIR=/d",
        "ASAN_OPTIONS=verify_asan_link_order=0"},
       {"A=1"}},
      {"one of the user",
       {"LD_PRELOAD=/usr/lib/libjemalloc.so.2", "ASAN_OPTIONS=detect_leaks=0"},
       {"LD_PRELOAD=/usr/lib/libjemalloc.so.2:" + library,
        "GFLOW_SHARE_DIR=/d",
        "ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0"},
       {"ASAN_OPTIONS=detect_leaks=0", "LD_PRELOAD=/usr/lib/libjemalloc.so.2"}},
      {"that of another gflow",
       {"LD_PRELOAD=a.so  b.so:/old/libgflow-share.so", "GFLOW_SHARE_DIR=/other"},
       {"LD_PRELOAD=a.so:b.so:" + library,
        "GFLOW_SHARE_DIR=/d",
        "ASAN_OPTIONS=verify_asan_link_order=0"},
       {"LD_PRELOAD=a.so:b.so"}},
      {"nothing but that",
       {"LD_PRELOAD=/old/libgflow-share.so", "GFLOW_SHARE_DIR=/other"},
       {"LD_PRELOAD=" + library, "GFLOW_SHARE_DIR=/d", "ASAN_OPTIONS=verify_asan_link_order=0"},
       {}},
  };
  for (const auto& row : kTable) {
    EXPECT_EQ(with_interposer(row.before, library, "/d"), row.with) << row.name;
    EXPECT_EQ(without_interposer(row.before), row.without) << row.name;
  }
}

TEST(GpuShare, LeavesNothingInTheJobsOfAJob) {
  const std::vector<std::string> plain = {"ASAN_OPTIONS=detect_leaks=0", "LD_PRELOAD=a.so"};
  for (const auto& before : {plain, std::vector<std::string>{}}) {
    const auto within = with_interposer(before, "/x/libgflow-share.so", "/d");
    EXPECT_EQ(without_interposer(within), before);
  }
}

TEST(GpuShare, IsNamedWherePathsAreSeparated) {
  EXPECT_TRUE(can_be_preloaded("/usr/libexec/gflow/libgflow-share.so"));
  EXPECT_FALSE(can_be_preloaded("/opt/my gflow/libgflow-share.so"));
  EXPECT_FALSE(can_be_preloaded("/opt/a:b/libgflow-share.so"));
  EXPECT_FALSE(can_be_preloaded(""));
}

class Library : public testing::Test {
 protected:
  Library() : folder_(testing::TempDir() + "gpu_share_" + std::to_string(::getpid())) {
    std::filesystem::create_directory(folder_);
    std::filesystem::permissions(folder_, std::filesystem::perms(0755));
    std::ofstream(path()) << "\177ELF and more";
  }
  ~Library() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path() const { return folder_ + "/libgflow-share.so"; }

  std::string folder_;
};

TEST_F(Library, CanBeLoadedWhereItCanBeRead) {
  EXPECT_EQ(why_not_loadable(path(), ::geteuid()), "");
  std::ofstream(path()) << "text";
  EXPECT_EQ(why_not_loadable(path(), ::geteuid()), "Exec format error");
  std::filesystem::remove(path());
  EXPECT_EQ(why_not_loadable(path(), ::geteuid()), "No such file or directory");
}

TEST_F(Library, IsAskedForWithTheRightsOfTheUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can take the rights of others";
  constexpr std::uint32_t kNobody = 65534;
  EXPECT_EQ(why_not_loadable(path(), kNobody), "");
  std::filesystem::permissions(folder_, std::filesystem::perms(0750));
  EXPECT_EQ(why_not_loadable(path(), kNobody), "Permission denied");
  EXPECT_EQ(why_not_loadable(path(), 0), "") << "this process's are its own again";
  std::filesystem::permissions(folder_, std::filesystem::perms(0755));
  std::filesystem::permissions(path(), std::filesystem::perms(0600));
  EXPECT_EQ(why_not_loadable(path(), kNobody), "Permission denied");
  EXPECT_EQ(::prctl(PR_GET_DUMPABLE), 1);
}

}  // namespace
}  // namespace gflow::runner
