// SPDX-License-Identifier: Apache-2.0
#include "placement/profile.h"

#include <algorithm>
#include <string>
#include <tuple>

namespace gflow::placement {
namespace {

std::string joined(const std::vector<std::string>& models) {
  std::string text;
  for (const std::string& model : models) {
    if (!text.empty()) text += '|';
    text += model;
  }
  return text;
}

/// Sort key of the published cut, largest first.
auto key(const DemandClass& kind) {
  const Demand& demand = kind.demand;
  return std::tuple(kind.count,
                    demand.milli_cpus,
                    demand.gpus == 0 ? Share{} : demand.share,
                    demand.gpus,
                    joined(demand.models));
}

}  // namespace

std::int64_t Profile::typical_count() const {
  std::int64_t sum = 0;
  for (const DemandClass& kind : typical_classes()) sum += kind.count;
  return sum;
}

Profile profile_of(std::span<const DemandClass> demands, int percent) {
  std::map<Demand, std::int64_t> counts;
  std::int64_t total = 0;
  for (const DemandClass& kind : demands) {
    counts[scored_part(kind.demand)] += kind.count;
    total += kind.count;
  }
  Profile profile;
  for (const auto& [demand, count] : counts) profile.classes.push_back({demand, count});
  std::ranges::stable_sort(profile.classes, std::ranges::greater{}, key);
  std::int64_t covered = 0;
  while (profile.typical < profile.classes.size() && covered * 100 < total * percent) {
    covered += profile.classes[profile.typical++].count;
  }
  return profile;
}

void DemandCounter::add(const Demand& demand, std::int64_t count) {
  added_ += count;
  while (count > 0) {
    const std::int64_t taken = std::min(count, 2 * kMemory - total_);
    counts_[scored_part(demand)] += taken;
    total_ += taken;
    count -= taken;
    if (total_ == 2 * kMemory) fade();
  }
}

void DemandCounter::fade() {
  total_ = 0;
  for (auto entry = counts_.begin(); entry != counts_.end();) {
    entry->second /= 2;
    total_ += entry->second;
    entry = entry->second == 0 ? counts_.erase(entry) : std::next(entry);
  }
}

Profile DemandCounter::profile() {
  constexpr std::int64_t kMaxBetween = 1024;
  due_ = added_ + std::clamp<std::int64_t>(added_, 1, kMaxBetween);
  std::vector<DemandClass> demands;
  for (const auto& [demand, count] : counts_) demands.push_back({demand, count});
  return profile_of(demands);
}

}  // namespace gflow::placement
