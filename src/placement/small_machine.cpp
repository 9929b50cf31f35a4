// SPDX-License-Identifier: Apache-2.0
#include "placement/small_machine.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>

#include "base/at.h"
#include "placement/locality.h"

namespace gflow::placement {
namespace {

constexpr double kSameValue = 1e-6;

std::vector<int> distances(const Topology& topology) {
  std::vector<int> all(std::size_t{1} << topology.gpus);
  std::vector<int> members;
  for (GpuMask set = 1; set < all.size(); ++set) {
    members.clear();
    for (GpuMask rest = set; rest != 0; rest &= rest - 1) {
      members.push_back(std::countr_zero(rest));
    }
    all[set] = distance_of(topology, members);
  }
  return all;
}

/// Whether all sets of a size have one value, for every size from 2.
template <typename Value>
bool alike(int gpus, Value value) {
  std::vector<std::optional<int>> seen(at(gpus) + 1);
  for (GpuMask set = 1; set < GpuMask{1} << gpus; ++set) {
    std::optional<int>& known = seen[at(std::popcount(set))];
    if (!known) known = value(set);
    if (std::popcount(set) > 1 && *known != value(set)) return false;
  }
  return true;
}

std::vector<double> chances_of(const DemandProfile& profile, int gpus) {
  std::vector<double> chances(at(gpus) + 1);
  double sum = 0;
  for (int size = 1; size <= gpus; ++size) {
    chances[at(size)] = std::max(profile.weights.at(at(size)), 0);
    sum += chances[at(size)];
  }
  for (double& chance : chances) chance = sum > 0 ? chance / sum : 0;
  if (sum <= 0) chances[1] = 1;
  return chances;
}

}  // namespace

SmallMachine::SmallMachine(const Topology& topology, const DemandProfile& profile)
    : gpus_(topology.gpus),
      rings_(topology),
      distances_(distances(topology)),
      by_distance_(alike(gpus_, [this](GpuMask set) { return rings_.speed(set); })),
      all_alike_(by_distance_ && alike(gpus_, [this](GpuMask set) { return distances_[set]; })) {
  sort_sets();
  if (all_alike_) return;
  const Prospects prospects = prospects_of(profile);
  if (gpus_ <= DivisionValues::kMaxGpus && !by_distance_) {
    values_.emplace(prospects);
  } else {
    next_job_.emplace(prospects);
  }
}

void SmallMachine::sort_sets() {
  sets_.resize((std::size_t{1} << gpus_) - 1);
  std::iota(sets_.begin(), sets_.end(), GpuMask{1});
  std::ranges::sort(sets_, {}, [this](GpuMask set) {
    const int distance = by_distance_ ? distances_[set] : 0;
    return std::tuple(std::popcount(set), -rings_.speed(set), distance, set);
  });
  firsts_.assign(1, 0);
  for (int size = 1; size <= gpus_ + 1; ++size) {
    const auto smaller = [size](GpuMask set) { return std::popcount(set) < size; };
    firsts_.push_back(
        static_cast<std::size_t>(std::ranges::partition_point(sets_, smaller) - sets_.begin()));
  }
}

std::span<const GpuMask> SmallMachine::sets_of(int count) const {
  const std::size_t first = firsts_[at(count)];
  return std::span(sets_).subspan(first, firsts_[at(count) + 1] - first);
}

Prospects SmallMachine::prospects_of(const DemandProfile& profile) const {
  Prospects prospects{.gpus = gpus_, .shares = {}, .chances = chances_of(profile, gpus_)};
  prospects.shares.assign(std::size_t{1} << gpus_, 0.0);
  for (const GpuMask set : sets_) {
    const int size = std::popcount(set);
    if (size < 2) continue;
    const GpuMask best = sets_of(size).front();
    prospects.shares[set] =
        by_distance_ ? static_cast<double>(distances_[best]) / distances_[set]
                     : static_cast<double>(rings_.speed(set)) / std::max(rings_.best(size), 1);
  }
  return prospects;
}

bool SmallMachine::as_good(GpuMask a, GpuMask b) const {
  return rings_.speed(a) == rings_.speed(b) && (!by_distance_ || distances_[a] == distances_[b]);
}

double SmallMachine::value_of(const Division& division) const {
  return values_ ? values_->of(division) : next_job_->expects(division);
}

GpuMask SmallMachine::choose(GpuMask free, int count, const Division& held) const {
  GpuMask chosen = 0;
  double chosen_value = 0;
  Division division = held;
  ++division.jobs;
  for (const GpuMask set : sets_of(count)) {
    if ((set & ~free) != 0) continue;
    if (chosen != 0 && !as_good(set, chosen)) break;
    if (all_alike_) return set;
    division.held.at(at(held.jobs)) = set;
    const double value = value_of(division);
    const bool nearer = distances_[set] < distances_[chosen];
    if (chosen == 0 || value > chosen_value + kSameValue ||
        (value > chosen_value - kSameValue && nearer)) {
      chosen = set;
      chosen_value = value;
    }
  }
  return chosen;
}

int SmallMachine::best_within(GpuMask free, int count) const {
  for (const GpuMask set : sets_of(count)) {
    if ((set & ~free) == 0) return rings_.speed(set);
  }
  return 0;
}

}  // namespace gflow::placement
