// SPDX-License-Identifier: Apache-2.0
#include "daemon/slices_of_boot.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <filesystem>

namespace gflow::daemon {
namespace {

TEST(SlicesOfBoot, OfAnotherOneAreForgottenInTheStoreToo) {
  spdlog::set_level(spdlog::level::off);  // there is no log to write to
  const std::string path = testing::TempDir() + "/gflow-slices-" + std::to_string(::getpid());
  const auto store = store::Store::open(path).value();
  store::Batch made;
  made.slices = std::vector{MadeSlice{.node = "n0",
                                      .gpu = "GPU-0",
                                      .profile = "3g.40gb",
                                      .size = 4,
                                      .stage = SliceStage::Made,
                                      .uuid = "MIG-1",
                                      .gpu_instance = 2}};
  made.lived = store::Lived{std::chrono::hours(1), {}, "first"};
  ASSERT_TRUE(store->commit(made));
  auto loaded = store->load().value();
  ASSERT_TRUE(forget_slices_of_another_boot(loaded, *store, "first"));
  EXPECT_EQ(loaded.slices, *made.slices);
  EXPECT_EQ(store->load().value().slices, *made.slices);
  ASSERT_TRUE(forget_slices_of_another_boot(loaded, *store, "second"));
  EXPECT_TRUE(loaded.slices.empty());
  EXPECT_TRUE(store->load().value().slices.empty());
  EXPECT_EQ(store->load().value().lived.boot_id, "first") << "the next commit says so";
  for (const char* end : {"", "-wal", "-shm", ".ids"}) std::filesystem::remove(path + end);
}

}  // namespace
}  // namespace gflow::daemon
