// SPDX-License-Identifier: Apache-2.0
#include "placement/device_set.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>

#include "base/at.h"
#include "placement/grown_set.h"
#include "placement/locality.h"
#include "placement/ring.h"
#include "placement/small_machine.h"

namespace gflow::placement {
namespace {

std::vector<int> members(const DeviceSet& set, int gpus) {
  std::vector<int> list;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    if (set[at(gpu)]) list.push_back(gpu);
  }
  return list;
}

GpuMask mask_of(const DeviceSet& set) { return static_cast<GpuMask>(set.to_ullong()); }

std::vector<int> members(GpuMask set) {
  std::vector<int> list;
  for (; set != 0; set &= set - 1) list.push_back(std::countr_zero(set));
  return list;
}

/// The jobs of a question as disjoint sets: of a GPU that several share, the first.
Division division_of(const DeviceQuestion& question, int gpus) {
  Division division;
  GpuMask left = ((GpuMask{1} << gpus) - 1) & ~mask_of(question.free);
  for (const DeviceSet& held : question.held) {
    const GpuMask own = mask_of(held) & left;
    if (own == 0) continue;
    division.add(own);
    left &= ~own;
  }
  if (left != 0) division.add(left);
  return division;
}

int links_of(const Topology& topology, std::span<const int> devices) {
  int links = 0;
  for (const int a : devices) {
    for (const int b : devices) links += a < b ? topology.links_between(a, b) : 0;
  }
  return links;
}

}  // namespace

class DeviceTable::Parts {
 public:
  Parts(int gpus, const Topology& topology, const DemandProfile& profile)
      : gpus_(gpus), topology_(topology) {
    if (is_known() && gpus <= kMaxRingGpus) small_.emplace(topology_, profile);
  }

  [[nodiscard]] std::vector<int> choose(const DeviceQuestion& question) const {
    if (question.count == 0) return {};
    if (small_) {
      return members(
          small_->choose(mask_of(question.free), question.count, division_of(question, gpus_)));
    }
    std::vector<int> free = members(question.free, gpus_);
    if (is_known()) return grown_set(topology_, free, question.count);
    free.resize(at(question.count));
    return free;
  }

  [[nodiscard]] DeviceReason reason(std::span<const int> devices, const DeviceSet& free) const {
    const int count = static_cast<int>(devices.size());
    DeviceReason reason;
    if (count < 2 || !is_known()) return reason;
    reason.numa_nodes = numa_nodes_of(topology_, devices);
    reason.links = links_of(topology_, devices);
    reason.on_switch = topology_.has_switch() && std::ranges::all_of(devices, [this](int gpu) {
                         return topology_.switch_links[at(gpu)] > 0;
                       });
    if (small_) {
      GpuMask set = 0;
      for (const int gpu : devices) set |= GpuMask{1} << gpu;
      reason.mb_per_second = small_->rings().speed(set);
      reason.best_of_free = small_->best_within(mask_of(free) | set, count);
      reason.best_of_node = small_->rings().best(count);
      return reason;
    }
    std::vector<int> all(at(gpus_));
    std::iota(all.begin(), all.end(), 0);
    reason.mb_per_second = ring_speed(topology_, devices);
    DeviceSet with = free;
    for (const int gpu : devices) with.set(at(gpu));
    reason.best_of_free = best_grown(members(with, gpus_), reason.mb_per_second, count);
    reason.best_of_node = best_grown(all, reason.best_of_free, count);
    return reason;
  }

 private:
  [[nodiscard]] bool is_known() const { return gpus_ > 0 && topology_.gpus == gpus_; }

  [[nodiscard]] int best_grown(const std::vector<int>& free, int at_least, int count) const {
    return std::max(at_least, ring_speed(topology_, grown_set(topology_, free, count)));
  }

  int gpus_;
  Topology topology_;
  std::optional<SmallMachine> small_;
};

DemandProfile DemandProfile::usual() {
  DemandProfile profile;
  profile.weights = {0, 350, 200, 80, 200, 60, 20, 10, 80, 5, 5, 5, 5, 5, 5, 5, 20};
  return profile;
}

DeviceTable::DeviceTable(int gpus, const Topology& topology, const DemandProfile& profile)
    : parts_(std::make_unique<const Parts>(gpus, topology, profile)) {}

DeviceTable::~DeviceTable() = default;

DeviceChoice DeviceTable::choose(const DeviceQuestion& question) const {
  DeviceChoice choice;
  choice.devices = parts_->choose(question);
  choice.reason = parts_->reason(choice.devices, question.free);
  return choice;
}

}  // namespace gflow::placement
