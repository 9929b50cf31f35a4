// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/file.h>

#include "devices/machine_folder.h"
#include "devices/nvml/cutting.h"
#include "devices/sim/made_instances.h"
#include "devices/slicer.h"
#include "devices/source.h"
#include "os/file.h"

// The real gflow-mig with a libnvidia-ml.so.1 that plays the machine of a file.
namespace gflow::devices {
namespace {

using testing::MachineFolder;
using namespace slice_outcome;

std::vector<std::string> environment_of(const MachineFolder& folder) {
  return {std::string("LD_LIBRARY_PATH=") + GFLOW_FAKE_NVML_DIR,
          "GFLOW_FAKE_NVML=" + folder.file(),
          "GFLOW_NVML_LIBRARY="};
}

std::unique_ptr<Slicer> slicer_of(const MachineFolder& folder,
                                  std::chrono::seconds patience = std::chrono::seconds(30)) {
  return open_slicer("nvml",
                     {.program = GFLOW_MIG,
                      .lock = folder.path() + "/lock",
                      .patience = patience,
                      .environment = environment_of(folder)})
      .value();
}

SliceOutcome told(Slicer& slicer, const MadeSlice& slice) {
  slicer.order(slice);
  while (true) {
    pollfd ready{slicer.fd(), POLLIN, 0};
    (void)::poll(&ready, 1, -1);  // looked at again
    const std::vector<SliceNews> news = slicer.poll();
    if (!news.empty()) return news.front().outcome;
  }
}

/// "made", "removed", "refused: WHY", "unclear: WHY".
std::string text_of(const SliceOutcome& outcome) {
  const std::string line = nvml::to_line(outcome);
  return line.starts_with("made ") ? "made" : line;
}

constexpr const char* kCut =
    "gpus: [{model: H100, uuid: GPU-a, mig: [{profile: 1g.10gb, uuid: MIG-his}]}]\n";
constexpr const char* kHangs =
    "gpus: [{model: H100, uuid: GPU-a, mig: []}]\n"
    "nvml: {calls: {nvmlDeviceCreateGpuInstanceWithPlacement: hang}}\n";

MadeSlice slice(const std::string& profile, int start, int size) {
  return {.node = "n0", .gpu = "GPU-a", .profile = profile, .start = start, .size = size};
}

TEST(MigSlicer, MakesAndRemovesAndIsAskedAgainWithoutHarm) {
  const MachineFolder folder;
  folder.write(kCut);
  const auto slicer = slicer_of(folder);
  MadeSlice order = slice("3g.40gb", 0, 4);
  const SliceOutcome first = told(*slicer, order);
  ASSERT_EQ(text_of(first), "made") << nvml::to_line(first);
  EXPECT_EQ(text_of(told(*slicer, order)), "refused somebody else has taken its place meanwhile");
  order.again = true;
  EXPECT_EQ(told(*slicer, order), first);
  order.stage = SliceStage::Removing;
  order.uuid = std::get<Made>(first).uuid;
  order.gpu_instance = std::get<Made>(first).gpu_instance;
  EXPECT_EQ(text_of(told(*slicer, order)), "removed");
  EXPECT_EQ(text_of(told(*slicer, order)), "removed");
  EXPECT_TRUE(sim::read_made(folder.file()).value().all.empty());
}

TEST(MigSlicer, LeavesWhatIsNotTheOneThatWasMade) {
  const MachineFolder folder;
  folder.write(kCut);
  const auto slicer = slicer_of(folder);
  MadeSlice order = slice("2g.20gb", 4, 2);
  const auto made = std::get<Made>(told(*slicer, order));
  order.stage = SliceStage::Removing;
  order.uuid = "MIG-of-before";
  order.gpu_instance = made.gpu_instance;
  EXPECT_EQ(text_of(told(*slicer, order)), "removed");
  order.uuid = made.uuid;
  order.gpu_instance = made.gpu_instance + 1;
  EXPECT_EQ(text_of(told(*slicer, order)), "removed");
  EXPECT_EQ(sim::read_made(folder.file()).value().all.size(), 1U);
  // The place of somebody else's is not free, whatever was decided.
  EXPECT_EQ(text_of(told(*slicer, slice("7g.80gb", 0, 8))), "refused Insufficient Resources");
  EXPECT_EQ(text_of(told(*slicer, slice("3g.20gb", 0, 4))), "refused this GPU has no such profile");
}

/// What gflow made, half removed.
MadeSlice half_removed(const MachineFolder& folder, Slicer& slicer) {
  MadeSlice order = slice("3g.40gb", 0, 4);
  const auto made = std::get<Made>(told(slicer, order));
  EXPECT_TRUE(sim::destroy_compute(folder.file(), "GPU-a", made.gpu_instance));
  order.stage = SliceStage::Removing;
  order.uuid = made.uuid;
  order.gpu_instance = made.gpu_instance;
  return order;
}

TEST(MigSlicer, OneWithoutADeviceIsGflowsOnlyWhereItBeganToRemoveIt) {
  const MachineFolder folder;
  folder.write(kCut);
  const auto slicer = slicer_of(folder);
  MadeSlice order = half_removed(folder, *slicer);
  const auto simulated = open_slicer("sim:" + folder.file(), {}).value();
  EXPECT_EQ(text_of(told(*slicer, order)), "removed");
  EXPECT_EQ(text_of(told(*simulated, order)), "removed");
  EXPECT_EQ(sim::read_made(folder.file()).value().all.size(), 1U);
  order.again = true;
  EXPECT_EQ(text_of(told(*slicer, order)), "removed");
  EXPECT_TRUE(sim::read_made(folder.file()).value().all.empty());
}

/// Ordered again, as the driver did not answer, and taken by somebody meanwhile.
TEST(MigSlicer, AnInstanceThatSomebodyElseHasCutFurtherIsHis) {
  const MachineFolder folder;
  folder.write("gpus: [{model: H100, uuid: GPU-a, mig: [1c.3g.40gb, 1c.3g.40gb]}]\n");
  const auto slicer = slicer_of(folder);
  const sim::SimMachine machine = sim::load_machine(folder.file()).value();
  const MigInstance his = machine.devices.front().mig.instances.front();
  MadeSlice order = slice("3g.40gb", his.start, his.size);
  order.again = true;
  EXPECT_EQ(text_of(told(*slicer, order)), "refused somebody else has taken its place meanwhile");
}

TEST(MigSlicer, WhatIsBegunAlreadyIsNotUndone) {
  const std::string faulty =
      std::string(kCut) + "nvml: {calls: {nvmlGpuInstanceCreateComputeInstance: 999}}\n";
  const MachineFolder folder;
  folder.write(faulty);
  const auto slicer = slicer_of(folder);
  MadeSlice order = slice("3g.40gb", 0, 4);
  EXPECT_EQ(text_of(told(*slicer, order)), "refused Unknown Error");
  EXPECT_TRUE(sim::read_made(folder.file()).value().all.empty()) << "it was its own";
  ASSERT_TRUE(sim::make_instance(folder.file(), "GPU-a", "3g.40gb", 0));
  order.again = true;
  EXPECT_EQ(text_of(told(*slicer, order)), "unclear Unknown Error");
  EXPECT_EQ(sim::read_made(folder.file()).value().all.size(), 1U);
  folder.write(kCut);
  EXPECT_EQ(text_of(told(*slicer, order)), "made");
}

TEST(MigSlicer, ADriverThatFailsMayHaveRemovedIt) {
  const MachineFolder folder;
  folder.write(kCut);
  const auto slicer = slicer_of(folder);
  MadeSlice order = slice("3g.40gb", 0, 4);
  const auto made = std::get<Made>(told(*slicer, order));
  order.stage = SliceStage::Removing;
  order.uuid = made.uuid;
  order.gpu_instance = made.gpu_instance;
  folder.write(std::string(kCut) + "nvml: {calls: {nvmlComputeInstanceDestroy: 999}}\n");
  EXPECT_EQ(text_of(told(*slicer, order)), "refused Unknown Error");
  folder.write(std::string(kCut) + "nvml: {calls: {nvmlComputeInstanceDestroy_done: 999}}\n");
  EXPECT_EQ(text_of(told(*slicer, order)), "unclear Unknown Error");
  order.again = true;
  folder.write(kCut);
  EXPECT_EQ(text_of(told(*slicer, order)), "removed");
  EXPECT_TRUE(sim::read_made(folder.file()).value().all.empty());
}

TEST(MigSlicer, NothingIsSaidOfWhatWasNotLookedAt) {
  for (const char* call : {"nvmlInit_v2: 9",
                           "nvmlDeviceGetHandleByUUID: 999",
                           "nvmlDeviceGetGpuInstanceProfileInfoV: 999",
                           "nvmlDeviceGetGpuInstances: 999",
                           "nvmlDeviceGetMaxMigDeviceCount: 999"}) {
    const MachineFolder folder;
    folder.write(kCut);
    const auto slicer = slicer_of(folder);
    MadeSlice order = half_removed(folder, *slicer);
    folder.write(std::string(kCut) + "nvml: {calls: {" + call + "}}\n");
    EXPECT_EQ(text_of(told(*slicer, order)).substr(0, 7), "refused") << call;
    order.again = true;
    EXPECT_EQ(text_of(told(*slicer, order)).substr(0, 7), "unclear") << call;
    EXPECT_EQ(sim::read_made(folder.file()).value().all.size(), 1U);
  }
}

TEST(MigSlicer, WhatNobodyWantsAnyMoreIsFinishedAndNotBegun) {
  for (const bool is_simulated : {false, true}) {
    const MachineFolder folder;
    folder.write(kCut);
    const auto slicer =
        is_simulated ? open_slicer("sim:" + folder.file(), {}).value() : slicer_of(folder);
    MadeSlice order = slice("3g.40gb", 0, 4);
    order.again = true;
    order.only_looks = true;
    EXPECT_EQ(text_of(told(*slicer, order)), "refused nobody wants it any more");
    ASSERT_TRUE(sim::make_instance(folder.file(), "GPU-a", "3g.40gb", 0));
    EXPECT_EQ(text_of(told(*slicer, order)), "made");
  }
}

TEST(MigSlicer, ADriverThatHangsIsGivenUpAndAskedAgain) {
  const MachineFolder folder;
  folder.write(kHangs);
  const auto slicer = slicer_of(folder, std::chrono::seconds(1));
  MadeSlice order = slice("3g.40gb", 4, 4);
  EXPECT_EQ(text_of(told(*slicer, order)), "unclear the driver does not answer within 1 s");
  folder.write("gpus: [{model: H100, uuid: GPU-a, mig: []}]\n");
  order.again = true;
  std::string last;
  while ((last = text_of(told(*slicer, order))) != "made") {
    ASSERT_EQ(last, "unclear an earlier gflow-mig has not come back from the driver");
  }
}

/// So that what is found at its place later is not taken for what gflow made.
TEST(MigSlicer, AFirstOrderThatIsNotBegunIsRefusedAndALaterOneUnclear) {
  const MachineFolder folder;
  folder.write(kHangs);
  const std::string earlier = "an earlier gflow-mig has not come back from the driver";
  const auto expect_refused_first = [](const auto& open, const std::string& why) {
    for (const SliceStage stage : {SliceStage::Making, SliceStage::Removing}) {
      MadeSlice order = slice("3g.40gb", 0, 4);
      order.gpu = "GPU-b";
      order.stage = stage;
      EXPECT_EQ(text_of(told(*open(), order)), "refused " + why);
      order.again = true;
      EXPECT_EQ(text_of(told(*open(), order)), "unclear " + why);
    }
  };
  expect_refused_first(
      [&folder] {
        auto slicer = slicer_of(folder, std::chrono::seconds(1));
        EXPECT_EQ(text_of(told(*slicer, slice("3g.40gb", 4, 4))).substr(0, 7), "unclear");
        return slicer;
      },
      earlier);
  expect_refused_first([] { return open_slicer("nvml", {.program = "", .lock = ""}).value(); },
                       "gflow-mig is not installed");
  const os::Fd lock = os::open_file(folder.path() + "/lock", O_RDWR | O_CREAT).value();
  ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
  expect_refused_first([&folder] { return slicer_of(folder); }, earlier);
}

TEST(MigSlicer, SaysWhatItsProgramSays) {
  for (const SliceOutcome& one : {SliceOutcome(Made{"MIG-5a 7", 3}),
                                  SliceOutcome(Removed{}),
                                  SliceOutcome(Refused{"no room"}),
                                  SliceOutcome(Unclear{"it hangs"})}) {
    EXPECT_EQ(nvml::outcome_from(nvml::to_line(one)), one);
  }
  for (const char* wrong : {"", "made", "made MIG-1", "made MIG-1 x", "\x80"}) {
    EXPECT_EQ(text_of(nvml::outcome_from(wrong)), "unclear gflow-mig ended without a word")
        << wrong;
  }
}

TEST(MadeInstances, AFileThatIsNoneIsNamed) {
  const MachineFolder folder;
  folder.write(kCut);
  for (const auto& [text, why] :
       {std::pair("{", "parse error"),
        std::pair(R"({"counted": 0, "instances": [{"gpu": "GPU-a", "id": 1, "profile": "1g.10gb",
                      "start": -1, "size": 1, "uuid": ""}]})",
                  "1 memory slices from -1 on are no place of a GPU"),
        std::pair(R"({"counted": 0, "instances": [{"gpu": "GPU-a", "id": 1, "profile": "1g.10gb",
                      "start": 0, "size": 40, "uuid": ""}]})",
                  "40 memory slices from 0 on are no place of a GPU")}) {
    ASSERT_TRUE(os::write_file(sim::made_file(folder.file()), text, 0644));
    const auto read = sim::load_machine(folder.file());
    ASSERT_FALSE(read) << text;
    EXPECT_NE(read.error().message.find(folder.file() + ".made: "), std::string::npos);
    EXPECT_NE(read.error().message.find(why), std::string::npos) << read.error().message;
  }
}

TEST(MigRoom, IsWhatTheDriverTells) {
  const MachineFolder folder;
  folder.write(kCut);
  const auto source =
      open_source("nvml", {.probe = GFLOW_GPUMON, .environment = environment_of(folder)}).value();
  ASSERT_EQ(source->machine().mig_gpus.size(), 1U);
  const MigGpu& gpu = source->machine().mig_gpus.front();
  EXPECT_EQ(gpu.uuid, "GPU-a");
  EXPECT_EQ(gpu.unread, "");
  EXPECT_EQ(gpu, open_source("sim:" + folder.file(), {}).value()->machine().mig_gpus.front());
  ASSERT_EQ(gpu.instances.size(), 1U);
  EXPECT_EQ(gpu.instances.front().profile, "1g.10gb");
  EXPECT_EQ(gpu.kinds.size(), 7U);
}

TEST(MigRoom, IsAsItWasWhereTheDriverDoesNotTell) {
  for (const char* call : {"nvmlDeviceGetMigMode",
                           "nvmlDeviceGetMaxMigDeviceCount",
                           "nvmlDeviceGetMigDeviceHandleByIndex",
                           "nvmlDeviceGetGpuInstances"}) {
    const MachineFolder folder;
    folder.write(kCut);
    const auto source =
        open_source("nvml", {.probe = GFLOW_GPUMON, .environment = environment_of(folder)}).value();
    ASSERT_EQ(source->machine().mig_gpus.size(), 1U);
    const MigGpu before = source->machine().mig_gpus.front();
    folder.write(std::string(kCut) + "nvml: {calls: {" + call + ": 999}}\n");
    source->refresh();
    ASSERT_TRUE(testing::reaches(*source, [&](const Machine& machine) {
      const bool is_unread = !machine.mig_gpus.empty() && !machine.mig_gpus.front().unread.empty();
      if (!is_unread) source->refresh();
      return is_unread;
    })) << call;
    MigGpu after = source->machine().mig_gpus.front();
    after.unread.clear();
    EXPECT_EQ(after, before) << call;
  }
}

}  // namespace
}  // namespace gflow::devices
