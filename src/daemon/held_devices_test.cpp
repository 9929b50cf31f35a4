// SPDX-License-Identifier: Apache-2.0
#include "daemon/held_devices.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <filesystem>

#include "os/file.h"
#include "runner/attempt_files.h"

namespace gflow::daemon {
namespace {

/// A job that was given GPU 0 of three, and what its attempt has on disk.
class HeldDevices : public testing::Test {
 protected:
  HeldDevices() {
    spdlog::set_level(spdlog::level::off);  // there is no log to write to
    std::string path = testing::TempDir() + "/gflow-held-XXXXXX";
    place_ = ::mkdtemp(path.data());
    attempt::Order order;
    order.job = 7;
    order.attempt = 1;
    order.devices = {{.index = 0, .share_parts = 10'000, .vendor = "nvidia", .uuid = "GPU-a"}};
    order.argv = {"true"};
    EXPECT_TRUE(files().create(order, Payload{}));
  }
  ~HeldDevices() override { std::filesystem::remove_all(place_); }
  HeldDevices(const HeldDevices&) = delete;
  HeldDevices& operator=(const HeldDevices&) = delete;

  [[nodiscard]] runner::AttemptFiles files() const { return {place_, JobId(7), 1}; }
  static Job running(std::vector<int> gpus, std::optional<GpuMove> move = std::nullopt) {
    Running state;
    state.attempt.number = 1;
    state.attempt.allocation = {.node = "n0", .gpus = std::move(gpus)};
    state.move = std::move(move);
    Job job;
    job.id = JobId(7);
    job.attempts = 1;
    job.spec.user = {1000, "alice"};
    job.spec.request.gpus = 1;
    job.state = state;
    return job;
  }
  /// "0 GPU-a, 2 GPU-c"
  [[nodiscard]] std::string held(const Job& job) const {
    engine::State state(engine::Policy{}, "boot");
    state.restore(Job(job));
    state.restored(JobId(8));
    std::string text;
    for (const Device& device : held_devices(state, place_, "n0")) {
      EXPECT_EQ(device.vendor, "nvidia");
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", device.index, device.uuid);
    }
    return text;
  }
  [[nodiscard]] std::vector<int> gpus_taken_over(Job job) const {
    take_over_moves({&job, 1}, place_);
    return attempt_of(job)->allocation.gpus;
  }

 private:
  std::string place_;
};

const GpuMove kMove{.from = 0, .to = 2, .from_uuid = "GPU-a", .to_uuid = "GPU-c"};

TEST_F(HeldDevices, AreThoseOfTheOrder) {
  EXPECT_EQ(held(running({0})), "0 GPU-a");
  EXPECT_EQ(gpus_taken_over(running({0})), std::vector{0});
}

TEST_F(HeldDevices, AreBothOfOneThatMoves) {
  EXPECT_EQ(held(running({0, 2}, kMove)), "0 GPU-a, 2 GPU-c");
  ASSERT_TRUE(files().note_moved_to({2, "GPU-c"}));
  EXPECT_EQ(held(running({0, 2}, kMove)), "0 GPU-a, 2 GPU-c");
  EXPECT_EQ(gpus_taken_over(running({0, 2}, kMove)), (std::vector{0, 2}));
}

TEST_F(HeldDevices, AreThatToWhichItMoved) {
  ASSERT_TRUE(files().note_moved_to({2, "GPU-c"}));
  EXPECT_EQ(held(running({2})), "2 GPU-c");
  ASSERT_TRUE(files().note_moved_to({0, "GPU-a"}));
  EXPECT_EQ(held(running({0})), "0 GPU-a");
}

/// As one has that was rebuilt, or put back as it was before the move.
TEST_F(HeldDevices, OfADatabaseThatKnowsOfNoMoveAreTakenOver) {
  ASSERT_TRUE(files().note_moved_to({2, "GPU-c"}));
  EXPECT_EQ(gpus_taken_over(running({0})), std::vector{2});
  Job starting = running({0});
  starting.state = Starting{std::get<Running>(starting.state).attempt};
  EXPECT_EQ(gpus_taken_over(starting), std::vector{2});
}

TEST_F(HeldDevices, WhatIsNotUnderstoodIsNotTakenOver) {
  for (const char* text : {"", "GPU-c", "x GPU-c", "99999999999 GPU-c"}) {
    ASSERT_TRUE(os::write_file(files().directory() + "/moved-to", text));
    EXPECT_EQ(gpus_taken_over(running({0})), std::vector{0}) << text;
    EXPECT_EQ(held(running({0})), "0 GPU-a") << text;
  }
  EXPECT_EQ(held(running({2})), "") << "of that one nothing is known but its index";
}

}  // namespace
}  // namespace gflow::daemon
