// SPDX-License-Identifier: Apache-2.0
#include "placement/fragmentation.h"

#include <algorithm>

namespace gflow::placement {
namespace {

template <typename Number>
void sort_unique(std::vector<Number>& numbers) {
  std::ranges::sort(numbers);
  const auto rest = std::ranges::unique(numbers);
  numbers.erase(rest.begin(), rest.end());
}

/// In two divisions, as published: the result may differ from that of one in its last bit.
double popularity(const Profile& profile, std::int64_t count) {
  std::int64_t all = 0;
  for (const DemandClass& kind : profile.classes) all += kind.count;
  const double of_all = static_cast<double>(count) / static_cast<double>(all);
  if (profile.typical == profile.classes.size()) return of_all;
  return of_all / (static_cast<double>(profile.typical_count()) / static_cast<double>(all));
}

}  // namespace

Fragmentation::Fragmentation(const Ledger& ledger, const Profile& profile)
    : jobs_(profile.typical_count()) {
  const auto models = static_cast<std::size_t>(ledger.models());
  for (const DemandClass& typical : profile.typical_classes()) {
    const Demand& demand = typical.demand;
    Class& kind = classes_.emplace_back();
    kind.milli_cpus = demand.milli_cpus;
    kind.gpus = demand.gpus;
    kind.parts = demand.share.parts;
    kind.count = typical.count;
    kind.popularity = popularity(profile, typical.count);
    for (std::size_t model = 0; model < models; ++model) {
      const bool accepted = ledger.accepts(demand, static_cast<ModelIndex>(model));
      kind.accepts.push_back(accepted ? 1 : 0);
    }
    if (kind.gpus > 1 && kind.parts != Share::kWholeParts) wide_fractions_ = true;
  }
  make_levels();
  if (!wide_fractions_) make_rows(models);
}

void Fragmentation::make_levels() {
  for (const Class& kind : classes_) {
    cpu_steps_.push_back(kind.milli_cpus);
    if (kind.gpus == 1) part_steps_.push_back(kind.parts);
    max_gpus_ = std::max(max_gpus_, kind.gpus);
  }
  sort_unique(cpu_steps_);
  sort_unique(part_steps_);
  level_.resize(static_cast<std::size_t>(Share::kWholeParts) + 1);
  std::uint16_t level = 0;
  for (std::size_t parts = 0; parts < level_.size(); ++parts) {
    while (level < part_steps_.size() && part_steps_[level] <= static_cast<std::int32_t>(parts)) {
      ++level;
    }
    level_[parts] = level;
  }
}

void Fragmentation::make_rows(std::size_t models) {
  const std::size_t cpus = cpu_steps_.size() + 1;
  const std::size_t levels = part_steps_.size() + 1;
  const std::size_t idles = static_cast<std::size_t>(max_gpus_) + 1;
  one_.resize(models * cpus * levels);
  many_.resize(models * cpus * idles);
  // The row of step c is for nodes with at least cpu_steps_[c - 1] free, and less than the next.
  for (const Class& kind : classes_) {
    const std::size_t least_parts = kind.gpus == 1 ? level(kind.parts) : levels;
    const std::size_t least_idle = kind.gpus > 1 ? static_cast<std::size_t>(kind.gpus) : idles;
    const auto step = std::ranges::upper_bound(cpu_steps_, kind.milli_cpus);
    const auto least_cpus = static_cast<std::size_t>(step - cpu_steps_.begin());
    const auto jobs = static_cast<std::int32_t>(kind.count);
    const auto count_in = [&](std::size_t row) {
      for (std::size_t l = least_parts; l < levels; ++l) one_[row * levels + l] += jobs;
      for (std::size_t i = least_idle; i < idles; ++i) many_[row * idles + i] += jobs;
    };
    for (std::size_t model = 0; model < models; ++model) {
      if (kind.accepts[model] == 0) continue;
      for (std::size_t c = model * cpus + least_cpus; c < (model + 1) * cpus; ++c) count_in(c);
    }
  }
}

Fragmentation::Row Fragmentation::row(ModelIndex model, std::int64_t milli_cpus) const {
  // At most a few dozen steps, and no branch to guess.
  std::size_t step = 0;
  for (const std::int64_t needed : cpu_steps_) step += needed <= milli_cpus ? 1U : 0U;
  const std::size_t at = static_cast<std::size_t>(model) * (cpu_steps_.size() + 1) + step;
  return {one_.data() + at * (part_steps_.size() + 1),
          many_.data() + at * (static_cast<std::size_t>(max_gpus_) + 1)};
}

std::int64_t Fragmentation::usable(const Remains& node) const {
  std::int64_t sum = 0;
  for (const Class& kind : classes_) {
    if (kind.gpus == 0 || node.milli_cpus < kind.milli_cpus) continue;
    int devices = 0;
    std::int64_t parts = 0;
    for (std::size_t i = 0; i < node.free.size(); ++i) {
      if (node.free[i] < kind.parts || !accepts(kind, node, i)) continue;
      ++devices;
      parts += node.free[i];
    }
    if (devices >= kind.gpus) sum += kind.count * parts;
  }
  return sum;
}

Fragmentation::Offered Fragmentation::offered_to(const Class& kind, const Remains& node) const {
  Offered offered;
  for (std::size_t i = 0; i < node.free.size(); ++i) {
    const bool right = accepts(kind, node, i);
    if (right) ++offered.accepted;
    if (right && node.free[i] >= kind.parts) {
      ++offered.devices;
    } else {
      offered.small += node.free[i];
    }
  }
  return offered;
}

double Fragmentation::published(const Remains& node) const {
  constexpr double kPerMilli = Share::kWholeParts / 1000.0;
  // Amounts by why they cannot be used, summed in this order: the order decides the rounding.
  double lacks_both = 0;
  double lacks_gpu = 0;
  double lacks_cpu = 0;
  double no_gpu_cpu_fits = 0;
  double no_gpu_lacks_cpu = 0;
  double no_access = 0;
  double total = 0;
  for (const std::int32_t parts : node.free) total += parts;
  total /= kPerMilli;
  for (const Class& kind : classes_) {
    const bool cpu_fits = node.milli_cpus >= kind.milli_cpus;
    if (kind.gpus == 0) {
      (cpu_fits ? no_gpu_cpu_fits : no_gpu_lacks_cpu) += kind.popularity * total;
      continue;
    }
    const Offered offered = offered_to(kind, node);
    const bool gpu_fits = offered.devices >= kind.gpus;
    if (offered.accepted == 0) {
      no_access += kind.popularity * total;
    } else if (gpu_fits && cpu_fits) {
      lacks_gpu += kind.popularity * (offered.small / kPerMilli);
    } else {
      (gpu_fits ? lacks_cpu : cpu_fits ? lacks_gpu : lacks_both) += kind.popularity * total;
    }
  }
  return ((((lacks_both + lacks_gpu) + lacks_cpu) + no_gpu_cpu_fits) + no_gpu_lacks_cpu) +
         no_access;
}

}  // namespace gflow::placement
