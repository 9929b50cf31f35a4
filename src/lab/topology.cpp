// SPDX-License-Identifier: Apache-2.0
#include "lab/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>

#include "lab/gpuallocator.h"
#include "lab/rng.h"
#include "placement/device_set.h"

namespace gflow::lab {
namespace {

using placement::DeviceSet;
using placement::RingTable;

struct Running {
  double ends = 0;
  GpuMask set = 0;
};
using Choose = std::function<GpuMask(GpuMask free, int count, const std::vector<Running>& running)>;

int draw_size(Rng& random, SizeMix mix, int gpus) {
  if (mix == SizeMix::Even) {
    return 1 + static_cast<int>(random.below(static_cast<std::uint32_t>(std::min(gpus, 5))));
  }
  constexpr std::array<std::pair<double, int>, 4> kSizes = {
      {{0.5, 1}, {0.75, 2}, {0.95, 4}, {1.0, 8}}};
  while (true) {
    const double drawn = random.unit();
    const auto found =
        std::ranges::find_if(kSizes, [drawn](const auto& size) { return drawn < size.first; });
    if (found->second <= gpus) return found->second;
  }
}

/// The first that ends gives back its GPUs.
void end_one(std::vector<Running>& running, double& now, GpuMask& free) {
  const auto first = std::ranges::min_element(running, {}, &Running::ends);
  now = first->ends;
  free |= first->set;
  running.erase(first);
}

/// The mean share of the best over the jobs of one seed.
double share_one(const RingTable& rings, SizeMix mix, Rng random, int jobs, const Choose& choose) {
  std::vector<Running> running;
  GpuMask free = (GpuMask{1} << rings.gpus()) - 1;
  double now = 0;
  double sum = 0;
  int counted = 0;
  for (int job = 0; job < jobs; ++job) {
    const int size = draw_size(random, mix, rings.gpus());
    const double run_time = -std::log(1 - random.unit());
    while (std::popcount(free) < size) end_one(running, now, free);
    const GpuMask set = choose(free, size, running);
    free &= ~set;
    running.push_back({now + run_time, set});
    if (size < 2) continue;
    sum += static_cast<double>(rings.speed(set)) / rings.best(size);
    ++counted;
  }
  return counted == 0 ? 1 : sum / counted;
}

template <typename Visit>
void each_set(GpuMask free, int count, Visit visit) {
  for (GpuMask set = free; set != 0; set = (set - 1) & free) {
    if (std::popcount(set) == count) visit(set);
  }
}

GpuMask lowest(GpuMask free, int count) {
  GpuMask set = 0;
  for (; count > 0; --count) {
    set |= free & (0 - free);
    free &= free - 1;
  }
  return set;
}

GpuMask drawn(Rng& random, GpuMask free, int count) {
  GpuMask set = 0;
  for (; count > 0; --count) {
    GpuMask left = free;
    for (auto skip = random.below(static_cast<std::uint32_t>(std::popcount(free))); skip > 0;
         --skip) {
      left &= left - 1;
    }
    const GpuMask one = left & (0 - left);
    set |= one;
    free &= ~one;
  }
  return set;
}

GpuMask richest(const GpuAllocator& worth, GpuMask free, int count) {
  GpuMask best = 0;
  each_set(free, count, [&](GpuMask set) {
    const int more = worth.worth(set) - worth.worth(best);
    if (best == 0 || more > 0 || (more == 0 && set < best)) best = set;
  });
  return best;
}

GpuMask of_table(const placement::DeviceTable& table,
                 GpuMask free,
                 int count,
                 const std::vector<Running>& running) {
  std::vector<DeviceSet> held;
  for (const Running& one : running) held.emplace_back(one.set);
  GpuMask set = 0;
  for (const int gpu : table.choose({DeviceSet(free), count, held}).devices) {
    set |= GpuMask{1} << gpu;
  }
  return set;
}

/// What chooses on one machine.
class Choosers {
 public:
  explicit Choosers(const Topology& topology)
      : pairs_(topology),
        allocator_(topology),
        table_(topology.gpus, topology, placement::DemandProfile::usual()) {}

  [[nodiscard]] Choose of(SetPolicy policy, std::uint64_t seed) {
    switch (policy) {
      case SetPolicy::LowestIndex:
        return [](GpuMask free, int count, const auto&) { return lowest(free, count); };
      case SetPolicy::Random:
        return [random = Rng(seed, 1)](GpuMask free, int count, const auto&) mutable {
          return drawn(random, free, count);
        };
      case SetPolicy::SumOfPairs:
        return
            [this](GpuMask free, int count, const auto&) { return richest(pairs_, free, count); };
      case SetPolicy::GpuAllocator:
        return
            [this](GpuMask free, int count, const auto&) { return allocator_.choose(free, count); };
      case SetPolicy::Gflow:
        break;
    }
    return [this](GpuMask free, int count, const auto& running) {
      return of_table(table_, free, count, running);
    };
  }

 private:
  GpuAllocator pairs_;
  RememberedAllocator allocator_;
  placement::DeviceTable table_;
};

SharingRow share_machine(const WiredMachine& machine,
                         SizeMix mix,
                         Choosers& choosers,
                         const SharingOptions& options) {
  const RingTable rings(machine.topology);
  SharingRow row{machine.name, mix, {}};
  for (std::size_t which = 0; which < kSetPolicies.size(); ++which) {
    const bool too_large = machine.topology.gpus > options.max_gpus_of_allocator;
    if (kSetPolicies.at(which) == SetPolicy::GpuAllocator && too_large) continue;
    double sum = 0;
    for (int number = 0; number < options.seeds; ++number) {
      const std::uint64_t seed = options.first_seed + static_cast<std::uint64_t>(number);
      const Choose choose = choosers.of(kSetPolicies.at(which), seed);
      sum += share_one(rings, mix, Rng(seed), options.jobs, choose);
    }
    row.shares.at(which) = sum / options.seeds;
  }
  return row;
}

}  // namespace

std::string_view mix_name(SizeMix mix) { return mix == SizeMix::Even ? "A" : "B"; }

std::string_view set_policy_name(SetPolicy policy) {
  constexpr std::array<std::string_view, kSetPolicies.size()> kNames = {
      "lowest index", "random", "sum of pairs", "go-gpuallocator", "gflow"};
  return kNames.at(static_cast<std::size_t>(policy));
}

std::vector<SharingRow> share_machines(const std::vector<WiredMachine>& machines,
                                       const SharingOptions& options,
                                       const Progress& progress) {
  std::vector<SharingRow> rows;
  for (std::size_t one = 0; one < machines.size(); ++one) {
    const WiredMachine& machine = machines[one];
    if (progress) {
      progress(static_cast<double>(one) / static_cast<double>(machines.size()), machine.name);
    }
    const int gpus = machine.topology.gpus;
    if (gpus < 2 || gpus > placement::kMaxRingGpus) continue;
    Choosers choosers(machine.topology);
    for (const SizeMix mix : {SizeMix::Even, SizeMix::Lab}) {
      rows.push_back(share_machine(machine, mix, choosers, options));
    }
  }
  return rows;
}

Report topology_report(const std::vector<SharingRow>& rows, const SharingOptions& options) {
  Report report;
  report.kind = "LabTopology";
  report.title = fmt::format(
      "{} jobs x {} seeds share a machine; of jobs with two or more GPUs: ring "
      "bandwidth as a share of the best of that size on the idle machine",
      options.jobs,
      options.seeds);
  report.facts = {{"jobs", std::to_string(options.jobs)}, {"seeds", std::to_string(options.seeds)}};
  report.notes = {"Mix A: 1 to 5 GPUs, each as often. Mix B: 1: 50 %, 2: 25 %, 4: 20 %, 8: 5 %."};
  Table table;
  table.key = "machines";
  table.columns = {{.key = "machine", .header = "MACHINE"}, {.key = "mix", .header = "MIX"}};
  constexpr std::array kColumns =
      std::to_array<std::pair<const char*, const char*>>({{"lowest_index", "LOWEST INDEX"},
                                                          {"random", "RANDOM"},
                                                          {"sum_of_pairs", "SUM OF PAIRS"},
                                                          {"go_gpuallocator", "GO-GPUALLOCATOR"},
                                                          {"gflow", "GFLOW"}});
  for (const auto& [key, header] : kColumns) {
    table.columns.push_back({.key = key, .header = header, .decimals = 4});
  }
  for (const SharingRow& row : rows) {
    std::vector<TableValue> values = {row.machine, std::string(mix_name(row.mix))};
    for (const auto& share : row.shares) {
      TableValue& value = values.emplace_back();
      if (share) value = *share;
    }
    table.rows.push_back(std::move(values));
  }
  report.tables = {std::move(table)};
  return report;
}

}  // namespace gflow::lab
