// SPDX-License-Identifier: Apache-2.0
#include "engine/cutting.h"

#include <algorithm>

#include "core/catalogue.h"
#include "engine/index.h"

namespace gflow::engine {

using placement::Demand;
using placement::NodeIndex;

bool Policy::cuts(std::string_view gpu) const {
  return std::ranges::any_of(cut_gpus,
                             [&](const std::string& one) { return one == kAllGpus || one == gpu; });
}

const Device* device_of(const Index& index, const MadeSlice& slice) {
  const auto node = index.nodes.find(slice.node);
  if (node == index.nodes.end() || slice.uuid.empty()) return nullptr;
  const auto& devices = node->second.machine.devices;
  const auto at = std::ranges::find(devices, slice.uuid, &Device::uuid);
  return at == devices.end() ? nullptr : &*at;
}

bool is_unseen(const SliceRecord& record) {
  return record.slice.stage == SliceStage::Removed ||
         (record.slice.stage == SliceStage::Made && !record.is_seen);
}

SliceRecord* slice_of(Index& index, const std::string& node, const Device& device) {
  if (!device.mig) return nullptr;
  const auto is_it = [&](const SliceRecord& one) {
    const MadeSlice& slice = one.slice;
    if (slice.node != node || slice.gpu != device.mig->parent) return false;
    if (slice.stage != SliceStage::Making) return slice.uuid == device.uuid;
    // Its UUID is told once it is made; a reading may come before.
    const auto& gpus = index.nodes.at(node).machine.mig_gpus;
    const auto gpu = std::ranges::find(gpus, slice.gpu, &MigGpu::uuid);
    return gpu != gpus.end() &&
           std::ranges::any_of(gpu->instances, [&](const MigInstance& instance) {
             return instance.id == device.mig->gpu_instance && instance.start == slice.start &&
                    instance.profile == slice.profile;
           });
  };
  const auto found = std::ranges::find_if(index.slices, is_it);
  return found == index.slices.end() ? nullptr : &*found;
}

std::vector<std::string> profiles_for(const Demand& demand, const MigGpu& gpu) {
  std::vector<std::string> profiles;
  for (const MigKind& kind : gpu.kinds) {
    const std::string model =
        catalogue::device_model("nvidia", slice_name(gpu.model, kind.profile), kind.memory);
    if (placement::wants(demand, "nvidia", model) && kind.memory >= demand.gpu_memory) {
      profiles.push_back(kind.profile);
    }
  }
  return profiles;
}

namespace {

/// Also those of which a reading does not tell, but one of before did.
std::vector<const MigGpu*> known_cut_gpus(const Index& index, NodeIndex node) {
  std::vector<const MigGpu*> gpus;
  const auto record = index.nodes.find(index.ledger.node(node).name);
  if (record == index.nodes.end() || index.policy.cut_gpus.empty()) return gpus;
  for (const MigGpu& gpu : record->second.machine.mig_gpus) {
    if (!gpu.kinds.empty() && index.policy.cuts(gpu.uuid)) gpus.push_back(&gpu);
  }
  return gpus;
}

}  // namespace

std::vector<const MigGpu*> cut_gpus(const Index& index, NodeIndex node) {
  std::vector<const MigGpu*> gpus = known_cut_gpus(index, node);
  const std::string& name = index.ledger.node(node).name;
  std::erase_if(gpus, [&](const MigGpu* gpu) {
    return !gpu->unread.empty() || drain_of_cut_gpu(index.drains, name, gpu->uuid) != nullptr;
  });
  return gpus;
}

bool may_be_cut_for(const Demand& demand) {
  return demand.is_whole() && demand.nodes == 1 &&
         std::ranges::any_of(demand.models, catalogue::is_slice);
}

int slices_to_make(const Index& index, const Demand& demand, NodeIndex node) {
  int could = 0;
  for (const MigGpu* gpu : known_cut_gpus(index, node)) {
    int most = 0;
    for (const std::string& profile : profiles_for(demand, *gpu)) {
      most = std::max(most, kind_of(*gpu, profile)->most);
    }
    could += most;
  }
  return could;
}

bool could_be_cut(const Index& index, placement::DemandIndex demand, NodeIndex node) {
  const placement::Ledger& ledger = index.ledger;
  const Demand& wanted = ledger.demand(demand);
  if (!may_be_cut_for(wanted) || !ledger.is_there(node) || !ledger.selects(demand, node)) {
    return false;
  }
  const placement::Node& facts = ledger.node(node);
  return facts.milli_cpus >= wanted.milli_cpus && facts.memory >= wanted.memory &&
         slices_to_make(index, wanted, node) >= wanted.gpus;
}

std::vector<std::string> models_to_cut(const Index& index) {
  std::vector<std::string> models;
  for (NodeIndex node = 0; node < index.ledger.size(); ++node) {
    for (const MigGpu* gpu : known_cut_gpus(index, node)) {
      for (const MigKind& kind : gpu->kinds) {
        const std::string model =
            catalogue::device_model("nvidia", slice_name(gpu->model, kind.profile), kind.memory);
        if (std::ranges::find(models, model) == models.end()) models.push_back(model);
      }
    }
  }
  return models;
}

std::optional<MonoTime> next_cut(const Index& index) {
  std::optional<MonoTime> next;
  const auto at = [&](MonoTime time) {
    if (time > index.now.mono) next = std::min(next.value_or(time), time);
  };
  for (const SliceRecord& one : index.slices) {
    if (one.retry_at) at(*one.retry_at);
    if (is_unseen(one)) at(one.since + kLongestUnseen);
  }
  for (const CutRefusal& one : index.cut_refusals) at(one.until);
  return next;
}

}  // namespace gflow::engine
