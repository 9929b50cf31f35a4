// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "devices/machine_folder.h"
#include "devices/source.h"

namespace gflow::devices {
namespace {

using testing::MachineFolder;
using testing::reaches;

constexpr const char* kIdle = "gpus: [{model: T4, count: 2}]";
constexpr const char* kBusy =
    "gpus: [{model: T4, processes: [{pid: 7, user: bob, name: train, memory: 2G}]}, {model: T4}]";

std::unique_ptr<Source> opened(const MachineFolder& folder) {
  auto source = open_source("sim:" + folder.file(), {});
  if (!source) throw std::runtime_error(source.error().message);
  return std::move(*source);
}

TEST(FileSource, AChangeOfTheFileIsAnEvent) {
  const MachineFolder folder;
  folder.write(kIdle);
  const auto source = opened(folder);
  EXPECT_EQ(source->machine().source, "sim:" + folder.file());
  EXPECT_FALSE(source->poll());
  folder.write(kBusy);
  ASSERT_TRUE(reaches(
      *source, [](const Machine& machine) { return machine.devices[0].processes.size() == 1; }));
  EXPECT_EQ(source->machine().devices[0].processes[0],
            (DeviceProcess{7, "bob", "train", Memory::gib(2)}));
  ASSERT_TRUE(os::write_file(folder.file(), kIdle));  // written in place
  EXPECT_TRUE(reaches(*source,
                      [](const Machine& machine) { return machine.devices[0].processes.empty(); }));
}

TEST(FileSource, AFileThatIsWrongChangesOnlyTheNote) {
  const MachineFolder folder;
  folder.write(kIdle);
  const auto source = opened(folder);
  const Machine before = source->machine();
  folder.write("gpus: [{model: T44}]");
  ASSERT_TRUE(reaches(*source, [](const Machine& machine) { return !machine.note.empty(); }));
  EXPECT_NE(source->machine().note.find("machine.yaml:1: gpus[0].model"), std::string::npos)
      << source->machine().note;
  EXPECT_EQ(source->machine().devices, before.devices);
  folder.write(kIdle);
  EXPECT_TRUE(reaches(*source, [&](const Machine& machine) { return machine == before; }));
}

TEST(FileSource, RefreshReadsAgain) {
  const MachineFolder folder;
  folder.write(kIdle);
  const auto source = opened(folder);
  source->refresh();
  pollfd watched{source->fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&watched, 1, 0), 1);
  EXPECT_FALSE(source->poll());  // nothing is different
  EXPECT_EQ(::poll(&watched, 1, 0), 0);
}

}  // namespace
}  // namespace gflow::devices
