// SPDX-License-Identifier: Apache-2.0
#include "runner/gpu_share.h"

#include <gtest/gtest.h>

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
      {"a part", GpuMode::Fraction, {usual}, {{"GPU-1", 8 * gib}}},
      {"turns", GpuMode::TimeSlice, {usual}, {{"GPU-1", 8 * gib}}},
      {"parts of two",
       GpuMode::Fraction,
       {usual, second},
       {{"GPU-1", 8 * gib}, {"GPU-2", 4 * gib}}},
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
    EXPECT_EQ(memory_limits(order), row.limits) << row.name;
  }
}

TEST(GpuShare, DoesNotLimitWhatOthersUse) {
  LaunchOrder order;
  order.mode = GpuMode::Fraction;
  order.devices = {grant("GPU-1", "nvidia", Memory::gib(8))};
  ASSERT_FALSE(memory_limits(order).empty());
  order.only_holds = true;
  EXPECT_TRUE(memory_limits(order).empty());
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

TEST(GpuShare, IsNamedWherePathsAreSeparated) {
  EXPECT_TRUE(can_be_preloaded("/usr/libexec/gflow/libgflow-share.so"));
  EXPECT_FALSE(can_be_preloaded("/opt/my gflow/libgflow-share.so"));
  EXPECT_FALSE(can_be_preloaded("/opt/a:b/libgflow-share.so"));
  EXPECT_FALSE(can_be_preloaded(""));
}

}  // namespace
}  // namespace gflow::runner
