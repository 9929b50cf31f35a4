// SPDX-License-Identifier: Apache-2.0
#include "core/job_changes.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/job_description.h"
#include "core/machine.h"

namespace gflow {
namespace {

using namespace std::chrono_literals;

std::set<std::string> names_of(const JobChanges& changes, const JobSpec& from) {
  std::set<std::string> names;
  for (const FieldInfo& row : changes.rows(from)) names.emplace(row.name);
  return names;
}

TEST(JobChanges, OnlyWhatIsMeantIsApplied) {
  JobSpec spec;
  spec.name = "train";
  spec.request.gpus = 2;
  spec.request.models = {"A100"};
  spec.time_limit = 60s;
  JobChanges changes;
  EXPECT_TRUE(changes.empty());
  changes.set(&JobSpec::priority, 50);
  changes.set(&JobSpec::time_limit, std::nullopt);
  changes.set(&Request::gpus, 4);
  EXPECT_TRUE(changes.has(&JobSpec::request));
  EXPECT_TRUE(changes.has(&Request::gpus));
  EXPECT_FALSE(changes.has(&Request::cpus));
  EXPECT_FALSE(changes.has(&JobSpec::name));
  changes.set(&Request::models, {"A100"});  // as it is
  EXPECT_EQ(names_of(changes, spec),
            (std::set<std::string>{"priority", "time_limit_seconds", "gpus"}));
  JobSpec wanted = spec;
  wanted.priority = 50;
  wanted.time_limit.reset();
  wanted.request.gpus = 4;
  changes.apply(spec);
  EXPECT_EQ(spec, wanted);
}

TEST(JobChanges, AMemberWithATableOfItsOwnIsAllOfItsRows) {
  JobChanges changes;
  changes.set(&JobSpec::dependencies, {{JobId(3)}, DependencyMode::Any, false});
  EXPECT_EQ(names_of(changes, {}), (std::set<std::string>{"jobs", "mode", "auto_cancel"}));
}

TEST(JobChanges, TheSignalOfPreemptionGoesWithIt) {
  JobSpec spec;
  spec.preemption = Preemption::Requeue;
  spec.preempt_signal = 10;
  JobChanges changes;
  changes.set(&JobSpec::preemption, Preemption::None);
  changes.apply(spec);
  EXPECT_EQ(spec.preempt_signal, 0);
}

TEST(JobDescription, NumbersAreWithinTheirRanges) {
  JobSpec spec;
  EXPECT_TRUE(check_fields(spec));
  spec.time_limit = 0s;
  EXPECT_EQ(check_fields(spec).error().message, "time limit 0 is not between 1 and 315360000");
  spec.time_limit.reset();
  spec.request.share = Share{0};
  EXPECT_EQ(check_fields(spec).error().message, "gpu share 0 is not between 1 and 10000");
}

TEST(JobDescription, AProjectIsShortAndHasNoBlanksAtItsEnds) {
  struct Row {
    std::string project;
    std::string_view message;
  };
  std::string wide;
  for (int i = 0; i < 64; ++i) wide += "训";
  const std::vector<Row> rows = {
      {"", ""},
      {"computer vision", ""},
      {std::string(64, 'x'), ""},
      {wide, ""},
      {std::string(65, 'x'), "its project has 65 characters; the maximum is 64"},
      {wide + "练", "its project has 65 characters; the maximum is 64"},
      {" ", "its project is blank"},
      {" a", "its project begins or ends with a blank: ' a'; write 'a'"},
      {"a ", "its project begins or ends with a blank: 'a '; write 'a'"},
      {"a\xff", "its project is not UTF-8: 'a\\xff'"},
      {"a\tb", "its project has only characters that can be seen, not U+0009"}};
  for (const Row& row : rows) {
    JobSpec spec;
    spec.project = row.project;
    const auto checked = check_fields(spec);
    EXPECT_EQ(checked ? "" : checked.error().message, row.message) << row.project;
  }
}

/// Each text of a job has something in it, by the name of its row.
JobSpec full_of_texts() {
  JobSpec spec;
  each_leaf(
      [](const auto& row, auto& value) {
        using Value = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::string>) value = std::string(row.name);
        if constexpr (std::is_same_v<Value, std::vector<std::string>>) value = {"A100"};
        if constexpr (std::is_same_v<Value, std::vector<Label>>) value = {{"zone", "a"}};
      },
      spec);
  return spec;
}

TEST(JobDescription, WhatIsPrivateIsHidden) {
  const JobSpec full = full_of_texts();
  const JobSpec empty;
  JobSpec spec = full;
  hide_private(spec);
  std::size_t hidden = 0;
  each_leaf(
      [&hidden](const auto& row, const auto& value, const auto& before, const auto& nothing) {
        const bool is_private = row.sight == Sight::Owner;
        EXPECT_TRUE(value == (is_private ? nothing : before)) << row.name;
        if (!is_private) return;
        ++hidden;
        EXPECT_FALSE(before == nothing) << row.name << " is empty here: this shows nothing";
      },
      spec,
      full,
      empty);
  EXPECT_GE(hidden, 2U);
}

/// Free text that everybody sees has to have a name in its place in an anonymous snapshot, which
/// also keeps it from who is shown no names.
TEST(JobDescription, TextsThatEverybodySeesHaveAnAlias) {
  // What these may hold are words of the machine's own: a vendor, models, labels of nodes.
  const std::set<std::string_view> own_words = {"gpu_vendor", "gpu_models", "selector"};
  const JobSpec spec = full_of_texts();
  each_leaf(
      [&](const auto& row, const auto& value) {
        using Value = std::remove_cvref_t<decltype(value)>;
        constexpr bool kIsText = std::is_same_v<Value, std::string> ||
                                 std::is_same_v<Value, std::vector<std::string>> ||
                                 std::is_same_v<Value, std::vector<Label>>;
        if constexpr (kIsText) {
          // anonymous() has a number for each user.
          const bool is_user = static_cast<const void*>(&value) == &spec.user.name;
          const bool is_safe = row.sight == Sight::Owner || !row.alias.empty() || is_user ||
                               own_words.contains(row.name);
          EXPECT_TRUE(is_safe) << row.name << ": say .alias, or here why it needs none";
        }
      },
      spec);
}

TEST(Device, IsGivenOutByOneRule) {
  struct Row {
    bool usable, drained, in_use;
    OtherUse use;
    DeviceBar bar;
  };
  const Row rows[] = {
      {true, false, false, OtherUse::Barred, DeviceBar::None},
      {true, false, true, OtherUse::Barred, DeviceBar::InUse},
      {true, false, true, OtherUse::Shared, DeviceBar::None},
      {true, true, true, OtherUse::Shared, DeviceBar::Drained},
      {false, true, true, OtherUse::Barred, DeviceBar::Broken},
  };
  const std::vector<Drain> drains = {{.node = "n1", .gpu = 3, .reason = "fan", .by = "root"}};
  EXPECT_EQ(drain_of_device(drains, "n1", Device{.index = 2}), nullptr);
  EXPECT_EQ(drain_of_device(drains, "n2", Device{.index = 3}), nullptr);
  EXPECT_EQ(drain_of_node(drains, "n1"), nullptr);
  for (const Row& row : rows) {
    Device device{.index = 3};
    device.usable = row.usable;
    if (row.in_use) device.processes = {{.pid = 1}};
    const Drain* drain = row.drained ? drain_of_device(drains, "n1", device) : nullptr;
    EXPECT_EQ(bar_of(device, drain, row.use), row.bar) << device_bar_name(row.bar);
  }
}

TEST(Device, IsDrainedByItsUuidWhereBothAreKnown) {
  struct Row {
    const char* drained;
    const char* uuid;
    int index;
    bool is;
  };
  const Row rows[] = {{"a", "a", 3, true},
                      {"a", "a", 0, true},
                      {"a", "b", 3, false},
                      {"", "a", 3, true},
                      {"", "a", 0, false},
                      {"a", "", 3, true},
                      {"a", "", 0, false},
                      {"", "", 3, true}};
  for (const Row& row : rows) {
    Device device{.index = row.index};
    device.uuid = row.uuid;
    const std::vector<Drain> drains = {{"n1", 3, "fan", "root", row.drained}};
    EXPECT_EQ(drain_of_device(drains, "n1", device) != nullptr, row.is)
        << row.drained << " " << row.uuid << " " << row.index;
  }
}

TEST(Device, OfAGpuThatIsCutIsDrainedWithIt) {
  const std::vector<Drain> drains = {{"n1", {}, "fan", "root", "GPU-a"}};
  Device slice{.index = 3, .uuid = "MIG-1", .mig = MigDevice{.parent = "GPU-a"}};
  EXPECT_NE(drain_of_device(drains, "n1", slice), nullptr);
  EXPECT_FALSE(is_of_device(drains.front(), slice));
  EXPECT_EQ(drain_of_node(drains, "n1"), nullptr);
  EXPECT_NE(drain_of_cut_gpu(drains, "n1", "GPU-a"), nullptr);
  EXPECT_EQ(drain_of_cut_gpu(drains, "n1", ""), nullptr);
  slice.mig->parent = "";  // it is gone
  EXPECT_EQ(drain_of_device(drains, "n1", slice), nullptr);
  Machine machine{.name = "n1"};
  EXPECT_FALSE(is_present(drains.front(), machine));
  machine.mig_gpus = {{.uuid = "GPU-a"}};
  EXPECT_TRUE(is_present(drains.front(), machine));
}

}  // namespace
}  // namespace gflow
