// SPDX-License-Identifier: Apache-2.0
#include "cli/info/free_gpus.h"

#include <gtest/gtest.h>

namespace gflow::cli {
namespace {

api::MachineView two_gpus() {
  api::MachineView machine;
  api::NodeView& node = machine.nodes.emplace_back();
  node.name = "lab";
  for (const int index : {0, 3}) {
    Device& device = node.devices.emplace_back().device;
    device.index = index;
    device.uuid = "GPU-" + std::to_string(index);
    device.model = "NVIDIA H200";
  }
  return machine;
}

TEST(FreeGpus, AreThoseTheJobWouldGet) {
  api::PlacementView view;
  view.request = "2";
  view.starts = {{{{"lab", {0, 3}}}}};
  const auto free = free_gpus(view, two_gpus());
  ASSERT_TRUE(free) << free.error().message;
  EXPECT_EQ(free_gpus_text(*free), "0,3");
  EXPECT_EQ(api::write(*free),
            R"({"apiVersion":"gflow/v1","kind":"FreeGpus","request":"2","node":"lab","gpus":[)"
            R"({"index":0,"uuid":"GPU-0","model":"NVIDIA H200"},)"
            R"({"index":3,"uuid":"GPU-3","model":"NVIDIA H200"}]})");
}

/// One that came between the two answers is not made up.
TEST(FreeGpus, MayBeGoneFromTheMachineMeanwhile) {
  api::PlacementView view;
  view.starts = {{{{"lab", {7}}}}};
  const auto free = free_gpus(view, two_gpus());
  ASSERT_TRUE(free);
  EXPECT_EQ(free_gpus_text(*free), "7");
  EXPECT_TRUE(api::write(*free).ends_with(R"("gpus":[{"index":7,"uuid":null,"model":null}]})"));
}

TEST(FreeGpus, AreNoneWhereTheJobWouldWait) {
  api::PlacementView view;
  api::BlockerView lacks;
  lacks.text = "Resources: Need 2 GPUs, only 1 available";
  view.blockers = {lacks};
  EXPECT_EQ(free_gpus(view, two_gpus()).error(),
            (Error{Code::WrongState,
                   "not free now: Resources: Need 2 GPUs, only 1 available; 'galloc' waits for "
                   "GPUs and keeps them, 'gbatch' runs a job when they are free"}));
  view.blockers.front().kind = BlockerKind::Gpus;
  view.blockers.front().code = view.blockers.front().text = "Resources";
  view.blockers.front().need = 2;
  view.blockers.front().available = 0;
  EXPECT_TRUE(free_gpus(view, two_gpus())
                  .error()
                  .message.starts_with("not free now: Need 2 GPUs, none available; "));
  view.limit = api::BlockerView{};
  view.limit->text = "GpuLimit: you hold 2 of at most 2 GPUs";
  EXPECT_TRUE(free_gpus(view, two_gpus())
                  .error()
                  .message.starts_with("not free now: GpuLimit: you hold 2 of at most 2 GPUs;"));
}

}  // namespace
}  // namespace gflow::cli
