// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "core/mig_geometry.h"
#include "scenario/numbers.h"
#include "scenario/scenario.h"

// GPUs with MIG, and a driver that cuts them as it is told.
namespace gflow::scenario {

/// "mig gpus=2 model=NAME gpu_memory=80G", "mig gpu=0 adds=3g.40gb start=4" by somebody else,
/// "mig gpu=0 loses start=4", "mig gpu=0 unread=TEXT".
Result<void> Scenario::mig(const Line& line) {
  const auto& keys = line.keys;
  const int gpus = GF_TRY(whole_number(keys, "gpus", 0));
  for (int i = 0; i < gpus; ++i) {
    MigGpu gpu{.uuid = fmt::format("GPU-{}", i)};
    gpu.model = keys.contains("model") ? keys.at("model") : "NVIDIA H100 80GB HBM3";
    const std::string memory = keys.contains("gpu_memory") ? keys.at("gpu_memory") : "81559M";
    gpu.kinds = mig_kinds(gpu.model, GF_TRY(parse_memory(memory)));
    machine_.mig_gpus.push_back(std::move(gpu));
  }
  if (gpus == 0) {
    MigGpu& gpu =
        machine_.mig_gpus.at(static_cast<std::size_t>(GF_TRY(whole_number(keys, "gpu", 0))));
    const int start = GF_TRY(whole_number(keys, "start", 0));
    if (keys.contains("unread")) gpu.unread = keys.at("unread");
    std::string uuid;
    if (keys.contains("adds")) GF_CHECK(add_slice(gpu, keys.at("adds"), start, uuid));
    if (!line.words.empty() && line.words.front() == "loses") {
      const auto at = std::ranges::find(gpu.instances, start, &MigInstance::start);
      std::erase_if(machine_.devices, [&](const Device& device) {
        return device.mig && device.mig->parent == gpu.uuid && device.mig->gpu_instance == at->id;
      });
      gpu.instances.erase(at);
    }
  }
  return step(engine::event::NodesChanged{{machine_}});
}

/// Its device has the first index that is free.
Result<void> Scenario::add_slice(MigGpu& gpu,
                                 const std::string& profile,
                                 int start,
                                 std::string& uuid) {
  const MigInstance made = GF_TRY(add_instance(gpu, profile, start));
  uuid = fmt::format("MIG-{}", ++slices_made_);
  Device device{.vendor = "nvidia", .model = slice_name(gpu.model, profile), .uuid = uuid};
  device.memory_total = kind_of(gpu, profile)->memory;
  device.mig = MigDevice{gpu.uuid, profile, made.id, 0};
  auto at = machine_.devices.begin();
  while (at != machine_.devices.end() && at->index == device.index) ++at, ++device.index;
  machine_.devices.insert(at, std::move(device));
  return {};
}

Result<void> Scenario::obey(const MadeSlice& order) {
  const auto gpu = std::ranges::find(machine_.mig_gpus, order.gpu, &MigGpu::uuid);
  SliceOutcome outcome = slice_outcome::Removed{};
  if (order.stage == SliceStage::Making) {
    std::string uuid;
    const auto made = order.only_looks
                          ? Result<void>(fail(Code::WrongState, "nobody wants it any more"))
                          : add_slice(*gpu, order.profile, order.start, uuid);
    if (made) {
      const auto at = std::ranges::find(gpu->instances, order.start, &MigInstance::start);
      outcome = slice_outcome::Made{uuid, at->id};
    } else {
      outcome = slice_outcome::Refused{made.error().message};
    }
  } else {
    std::erase(gpu->instances,
               MigInstance{order.gpu_instance, order.profile, order.start, order.size});
    std::erase_if(machine_.devices, [&](const Device& one) { return one.uuid == order.uuid; });
  }
  GF_CHECK(
      step(engine::event::SliceChanged{order.node, order.gpu, order.start, std::move(outcome)}));
  return step(engine::event::NodesChanged{{machine_}});
}

/// "driver cuts": all that it is told, until there is no more; "driver cuts once"; "driver refuses
/// reason=TEXT", "driver hangs", "driver halves" what it is told first: the device is gone, and its
/// instance is not.
Result<void> Scenario::driver(const Line& line) {
  const std::string& how = line.words.at(0);
  const bool is_once = how != "cuts" || line.words.size() > 1;
  if (is_once && orders_.empty()) return fail(Code::Failure, "it was told nothing");
  while (!orders_.empty()) {
    const MadeSlice order = orders_.front();
    orders_.erase(orders_.begin());
    if (how == "cuts") {
      GF_CHECK(obey(order));
    } else {
      const std::string why = line.keys.contains("reason") ? line.keys.at("reason") : "it hangs";
      const bool is_half = how == "halves";
      std::erase_if(machine_.devices,
                    [&](const Device& one) { return is_half && one.uuid == order.uuid; });
      if (is_half) GF_CHECK(step(engine::event::NodesChanged{{machine_}}));
      const SliceOutcome outcome = is_half || how == "hangs"
                                       ? SliceOutcome(slice_outcome::Unclear{why})
                                       : SliceOutcome(slice_outcome::Refused{why});
      GF_CHECK(step(engine::event::SliceChanged{order.node, order.gpu, order.start, outcome}));
    }
    if (is_once) break;
  }
  return {};
}

/// "expect cut 0:3g.40gb@4 1:1g.10gb@6*": all instances, a star at those that are gflow's; behind
/// "orders", what the driver was told and has not done.
Result<void> Scenario::expect_cut(const Line& line) {
  std::vector<std::string> have;
  for (std::size_t at = 0; at < machine_.mig_gpus.size(); ++at) {
    for (const MigInstance& one : machine_.mig_gpus[at].instances) {
      const bool is_ours = std::ranges::any_of(state_.slices(), [&](const MadeSlice& slice) {
        return slice.gpu == machine_.mig_gpus[at].uuid && slice.start == one.start;
      });
      have.push_back(fmt::format("{}:{}@{}{}", at, one.profile, one.start, is_ours ? "*" : ""));
    }
  }
  for (const MadeSlice& one : orders_) {
    have.push_back(fmt::format(
        "{}{}@{}", one.stage == SliceStage::Making ? "+" : "-", one.profile, one.start));
  }
  const std::vector<std::string> want(line.words.begin() + 1, line.words.end());
  if (have == want) return {};
  return fail(Code::Failure, fmt::format("it is {}", fmt::join(have, " ")));
}

}  // namespace gflow::scenario
