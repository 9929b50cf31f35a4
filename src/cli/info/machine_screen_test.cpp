// SPDX-License-Identifier: Apache-2.0
#include "cli/info/machine_screen.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "command/golden_test.h"

namespace gflow::cli {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

const WallTime kSeen = *parse_rfc3339("2026-03-01T12:00:05Z");

api::DeviceView h100(int index) {
  api::DeviceView view;
  view.device.index = index;
  view.device.model = "NVIDIA H100 80GB HBM3";
  view.model_short = "H100";
  view.device.memory_total = Memory::gib(80);
  view.device.memory_used = Memory{};
  view.device.utilization_percent = 0;
  return view;
}

api::JobView job_on(std::uint64_t id, std::string name, std::string user) {
  api::JobView job;
  job.id = JobId(id);
  job.spec.name = std::move(name);
  job.spec.user.name = std::move(user);
  job.status = Status::Running;
  return job;
}

/// A GPU in each state there is.
api::MachineView every_state() {
  api::MachineView machine;
  api::NodeView& node = machine.nodes.emplace_back();
  for (int i = 0; i < 8; ++i) node.devices.push_back(h100(i));
  auto& gpus = node.devices;
  gpus[0].jobs = gpus[1].jobs = {JobId(31)};
  gpus[0].mode = gpus[1].mode = GpuMode::Whole;
  gpus[0].device.utilization_percent = 92;
  gpus[0].device.memory_used = Memory::gib(71);
  gpus[2].jobs = {JobId(35), JobId(36)};
  gpus[2].mode = GpuMode::Fraction;
  gpus[2].device.utilization_percent = 41;
  gpus[2].device.memory_used = Memory::mib(1536);
  gpus[3].bar = DeviceBar::InUse;
  gpus[3].foreign = {{48121, "dave", "python", Memory::gib(22)}};
  gpus[4].bar = DeviceBar::Drained;
  gpus[4].drained = true;
  gpus[4].drained_reason = "fan is loud";
  gpus[5].bar = DeviceBar::Broken;
  gpus[5].device.usable = false;
  gpus[5].device.trouble = "fallen off the bus";
  gpus[5].device.memory_used.reset();
  gpus[5].device.utilization_percent.reset();
  gpus[6].jobs = {JobId(40)};
  gpus[6].mode = GpuMode::Whole;
  gpus[6].drained = true;
  machine.running = {job_on(31, "llama-ft", "alice"),
                     job_on(35, "serve", "bob"),
                     job_on(36, "训练任务", "carol"),
                     job_on(40, "a-name-as-long-as-people-make-them-v2", "bob")};
  machine.running[0].spec.time_limit = hours(8);
  machine.running[0].run_time = hours(3) + minutes(12);
  for (const std::size_t shared : {1U, 2U}) {
    machine.running[shared].spec.request = {
        .gpus = 1, .share = Share{shared == 1 ? 5000 : 2500}, .mode = GpuMode::Fraction};
    machine.running[shared].spec.time_limit = hours(shared);
  }
  machine.queued = 30;
  machine.held = 1;
  return machine;
}

MachineViewer looking(std::size_t columns) { return {"alice", kSeen, Zone(hours(0)), columns}; }

TEST(MachineScreen, IsAsReviewed) {
  for (const std::size_t columns : {40U, 80U, 120U, 200U}) {
    expect_golden(fmt::format("ginfo-{}.screen", columns),
                  machine_screen(every_state(), looking(columns), Painter()));
  }
}

/// Run times are told in whole seconds, and a screen is drawn a while after they were told.
TEST(MachineScreen, TheEndOfAJobStandsStill) {
  using std::chrono::milliseconds;
  const auto until = [](milliseconds ran, milliseconds stood) {
    api::MachineView machine = every_state();
    api::JobView& job = machine.running[0];
    MachineViewer viewer = looking(80);
    viewer.now += milliseconds(54'900);  // a minute but for a tenth of a second
    job.started = viewer.now;
    viewer.now += ran + stood;
    job.run_time = std::chrono::floor<std::chrono::seconds>(ran);
    const std::string text = machine_screen(machine, viewer, Painter());
    const std::size_t line = text.find("\n0 ") + 1;
    return text.substr(line, text.find('\n', line) - line).substr(70);
  };
  const std::string at_first = until(milliseconds(0), {});
  for (const int ran : {1, 99, 100, 999, 1'000, 1'099, 1'100, 59'999, 61'050, 3'600'000}) {
    EXPECT_EQ(until(milliseconds(ran), {}), at_first) << ran;
    EXPECT_NE(until(milliseconds(ran), std::chrono::minutes(10)), at_first) << ran;
  }
}

TEST(MachinePanel, IsAsReviewed) {
  for (const std::size_t columns : {80U, 120U}) {
    MachineViewer viewer = looking(columns);
    viewer.meters = true;
    expect_golden(fmt::format("gtop-gpus-{}.screen", columns),
                  machine_panel(every_state(), viewer, 20, Painter()));
  }
}

TEST(MachinePanel, CountsWhatHasNoRoom) {
  const auto lines = [](const std::string& text) {
    return static_cast<std::size_t>(std::ranges::count(text, '\n'));
  };
  const api::MachineView machine = every_state();
  const std::string whole = machine_panel(machine, looking(80), 100, Painter());
  const std::size_t gpus = machine.nodes[0].devices.size();
  for (std::size_t rows = 0; rows < 15; ++rows) {
    const std::string panel = machine_panel(machine, looking(80), rows, Painter());
    if (rows >= lines(whole)) {
      EXPECT_EQ(panel, whole) << rows;
    } else if (rows < 4) {
      EXPECT_EQ(lines(panel), 1U) << panel;  // the counts
    } else {
      const std::size_t shown = rows - (lines(whole) - gpus) - 1;
      EXPECT_EQ(lines(panel), rows);
      EXPECT_TRUE(panel.ends_with(fmt::format("... {} more GPUs\n", gpus - shown))) << panel;
    }
  }
}

TEST(MachineScreen, FitsEveryWidth) {
  for (std::size_t columns = 1; columns <= 220; columns += columns < 48 ? 1 : 13) {
    const std::string text = machine_screen(every_state(), looking(columns), Painter());
    for (const std::string_view line : split(text, '\n')) {
      EXPECT_LE(display_width(line), columns) << line;
    }
  }
}

TEST(MachineScreen, IsPaintedByStateAndOwner) {
  const std::string text = machine_screen(every_state(), looking(80), Painter(true));
  EXPECT_EQ(std::ranges::count(text, '\x1b'), 2 * (8 + 7)) << "the head, and a word a GPU";
  EXPECT_NE(text.find("\x1b[34min use"), std::string::npos) << "one's own";
  EXPECT_NE(text.find("\x1b[33mshared"), std::string::npos);
  EXPECT_NE(text.find("\x1b[32mfree"), std::string::npos);
  EXPECT_NE(text.find("\x1b[31mbroken"), std::string::npos);
  MachineViewer other = looking(80);
  other.user = "dave";
  EXPECT_NE(machine_screen(every_state(), other, Painter(true)).find("\x1b[36min use"),
            std::string::npos)
      << "another's";
}

TEST(MachineScreen, NamesNodesWhereThereAreSeveral) {
  api::MachineView machine = every_state();
  machine.nodes.front().name = "n1";
  api::NodeView& second = machine.nodes.emplace_back();
  second.name = "n2";
  second.devices = {h100(0)};
  second.devices[0].device.model = "NVIDIA GeForce RTX 3090";
  second.devices[0].model_short = "RTX3090";
  second.drained = true;
  second.drained_reason = "move";
  const std::string text = machine_screen(machine, looking(100), Painter());
  EXPECT_TRUE(text.starts_with("9 GPUs: 2 free, 2 in use, 1 shared, 1 outside, ")) << text;
  EXPECT_NE(text.find("\nn1    0    H100     in use"), std::string::npos) << text;
  EXPECT_NE(text.find("\nn2    0    RTX3090  free"), std::string::npos) << text;
  EXPECT_NE(text.find("\nNode n2: drained: move\n"), std::string::npos) << text;
}

TEST(MachineScreen, BreaksNotesAtTheWidthOfTheTerminal) {
  api::MachineView machine = every_state();
  machine.nodes[0].drained_absent = {{"", 9, "its fan is loud, a new one comes on Monday", "", ""}};
  const std::string text = machine_screen(machine, looking(40), Painter());
  EXPECT_NE(text.find("\n\nDrained and not present: GPU 9: its fan\n"
                      "is loud, a new one comes on Monday\n\n"),
            std::string::npos)
      << text;
}

TEST(MachineScreen, SaysWhyAGpuIsDrainedThatIsInUse) {
  api::MachineView machine = every_state();
  machine.nodes[0].devices[6].drained_reason = "new cooler";
  const std::string text = machine_screen(machine, looking(80), Painter());
  EXPECT_NE(text.find("\n\nGPU 6: drained: new cooler\n\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("drained: fan is loud"), std::string::npos) << text;  // in its row
}

TEST(MachineScreen, SaysWhereThereAreNone) {
  api::MachineView machine;
  machine.nodes.emplace_back().note = "there is no driver";
  EXPECT_EQ(machine_screen(machine, looking(80), Painter()),
            "No GPUs: there is no driver\nJobs without --gpus still run.\n\nno jobs\n");
  EXPECT_EQ(gpus_screen(machine, looking(80), Painter()), "");
}

}  // namespace
}  // namespace gflow::cli
