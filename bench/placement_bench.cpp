// SPDX-License-Identifier: Apache-2.0
// Placement: decisions per second, and what comes of them on public traces, beside what others
// published. Reads $GFLOW_LAB_DATA/openb.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <ranges>

#include "lab/churn.h"
#include "lab/inflation.h"
#include "lab/rng.h"
#include "placement/placer.h"

namespace {

using namespace gflow;
using placement::PolicyEntry;

constexpr std::array<std::string_view, 6> kPublished = {
    "random", "dot-prod", "gpu-clustering", "gpu-packing", "best-fit", "fgd"};
constexpr std::array<std::string_view, 5> kChurnTraces = {
    "default", "gpushare80", "gpuspec33", "multigpu50", "cpu250"};
constexpr int kFirstSeed = 42;
constexpr int kSeeds = 5;
constexpr int kChurnSeeds = 3;

template <typename T>
T need(Result<T> result) {
  if (result) return std::move(result).value();
  fmt::print(stderr, "placement_bench: {}\n", result.error().message);
  std::exit(1);
}

/// CPU time of this process: other processes on the machine do not count.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Speed {
  double per_second = 0;
  double tables_ms = 0;  // the first decision, which makes what the others use
  double p50_us = 0;
  double p99_us = 0;
  double worst_us = 0;
  double allocation = 0;
};

/// Tasks offered one by one until 1.3 times the capacity has arrived.
Speed speed_of(const lab::Openb& openb, const lab::ArrivalOrder& order, const PolicyEntry& policy) {
  placement::Ledger ledger = lab::openb_ledger(openb, order.ranks);
  placement::Placer placer(policy.make({}), openb.profile());
  std::vector<placement::DemandIndex> demands;
  for (const placement::Demand& task : openb.tasks) demands.push_back(ledger.intern(task));
  std::vector<double> took;
  took.reserve(order.tasks.size());
  std::int64_t used = 0;
  const double begin = cpu_seconds();
  (void)placer.choose(ledger, demands.front());
  const double start = cpu_seconds();
  for (const std::int32_t row : order.tasks) {
    const auto task = static_cast<std::size_t>(row);
    const auto before = std::chrono::steady_clock::now();
    placer.arrived(ledger, demands[task]);
    if (const auto choice = placer.choose(ledger, demands[task])) {
      ledger.take(demands[task], choice->placements.front());
      used += lab::parts_of(openb.tasks[task]);
    }
    const std::chrono::duration<double, std::micro> lasted =
        std::chrono::steady_clock::now() - before;
    took.push_back(lasted.count());
  }
  const double seconds = cpu_seconds() - start;
  std::ranges::sort(took);
  const auto quantile = [&took](double part) {
    return took[static_cast<std::size_t>(part * static_cast<double>(took.size() - 1))];
  };
  return {.per_second = static_cast<double>(took.size()) / seconds,
          .tables_ms = (start - begin) * 1000,
          .p50_us = quantile(0.5),
          .p99_us = quantile(0.99),
          .worst_us = took.back(),
          .allocation = 100.0 * static_cast<double>(used) / static_cast<double>(openb.capacity())};
}

/// As many nodes of 8 devices, models in the proportions of the trace.
lab::Openb grown(lab::Openb openb, std::size_t nodes) {
  const std::vector<placement::Node> given = std::move(openb.nodes);
  openb.nodes.clear();
  for (std::size_t i = 0; i < nodes; ++i) {
    placement::Node node = given[i % given.size()];
    node.name = fmt::format("node-{}", i);
    node.milli_cpus = 96'000;
    node.memory = Memory::gib(384);
    node.devices.resize(8, node.devices.front());
    openb.nodes.push_back(std::move(node));
  }
  return openb;
}

void print_speed(const std::string& what, const lab::Openb& openb, const lab::ArrivalOrder& order) {
  for (const PolicyEntry& policy : placement::policies()) {
    const Speed speed = speed_of(openb, order, policy);
    fmt::print("| {} | {} | {:.0f} | {:.1f} | {:.1f} | {:.0f} | {:.0f} | {:.2f} |\n",
               what,
               policy.name,
               speed.per_second,
               speed.p50_us,
               speed.p99_us,
               speed.worst_us,
               speed.tables_ms,
               speed.allocation);
  }
}

void measure_speed(const std::string& data) {
  fmt::print(
      "\n| nodes | policy | decisions/s | p50 us | p99 us | most us | first ms | allocation % |\n");
  fmt::print("|---|---|---|---|---|---|---|---|\n");
  const lab::Openb openb = need(lab::load_openb(data, "default"));
  print_speed("1,213 of openb", openb, need(lab::load_arrival_order(data, "default", kFirstSeed)));
  const lab::Openb large = grown(openb, 10'000);
  print_speed("10,000 of 8 GPUs", large, lab::draw_arrival_order(large, kFirstSeed));
}

struct Inflation {
  double at_130 = 0;
  double worst = 0;  // difference from the published curves
};

Inflation inflate(const std::string& data,
                  std::string_view trace,
                  const PolicyEntry& policy,
                  const std::vector<lab::PublishedRun>& published) {
  const lab::Openb openb = need(lab::load_openb(data, trace));
  Inflation mean;
  for (int seed = kFirstSeed; seed < kFirstSeed + kSeeds; ++seed) {
    const lab::ArrivalOrder order = need(lab::load_arrival_order(data, trace, seed));
    const lab::AllocationCurve curve = lab::run_inflation(openb, order, policy).curve;
    mean.at_130 += curve.back() / kSeeds;
    for (const lab::PublishedRun& run : published) {
      if (run.trace != trace || run.policy != policy.name || run.seed != seed) continue;
      for (std::size_t i = 0; i < curve.size(); ++i) {
        mean.worst = std::max(mean.worst, std::fabs(curve[i] - run.curve[i]));
      }
    }
  }
  return mean;
}

void print_row(std::string_view first, auto&& cells) {
  fmt::print("| {} |", first);
  for (const auto& cell : cells) fmt::print(" {} |", cell);
  fmt::print("\n");
  std::fflush(stdout);
}

void print_heading(std::string_view first) {
  std::vector<std::string> names;
  for (const PolicyEntry& policy : placement::policies()) names.emplace_back(policy.name);
  print_row(first, names);
  print_row("---", std::vector<std::string>(names.size(), "---"));
}

void measure_inflation(const std::string& data) {
  fmt::print(
      "\nInflation: GPU allocation % at 130 % arrived, seeds {}-{}.\n"
      "In brackets: published (mean of the same seeds), largest difference of any point.\n\n",
      kFirstSeed,
      kFirstSeed + kSeeds - 1);
  const std::vector<lab::PublishedRun> published = need(lab::load_published(data));
  print_heading("trace");
  for (const std::string_view trace : lab::kOpenbTraces) {
    std::vector<std::string> cells;
    for (const PolicyEntry& policy : placement::policies()) {
      const Inflation ours = inflate(data, trace, policy, published);
      double theirs = 0;
      for (const lab::PublishedRun& run : published) {
        const bool same = run.trace == trace && run.policy == policy.name;
        if (same && run.seed < kFirstSeed + kSeeds) theirs += run.curve.back() / kSeeds;
      }
      const bool known = std::ranges::count(kPublished, policy.name) > 0;
      cells.push_back(known
                          ? fmt::format("{:.2f} ({:.2f}, {:.2f})", ours.at_130, theirs, ours.worst)
                          : fmt::format("{:.2f}", ours.at_130));
    }
    print_row(trace, cells);
  }
}

void measure_churn(const std::string& data) {
  fmt::print(
      "\nChurn: mean GPU allocation % over time, seeds {}-{}. In brackets: another program.\n\n",
      kFirstSeed,
      kFirstSeed + kChurnSeeds - 1);
  const std::vector<lab::ChurnBaseline> baselines = need(lab::load_churn_baselines(data));
  print_heading("trace");
  for (const std::string_view trace : kChurnTraces) {
    const lab::Openb openb = need(lab::load_openb(data, trace));
    std::vector<std::string> cells;
    for (const PolicyEntry& policy : placement::policies()) {
      double mean = 0;
      for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kChurnSeeds; ++seed) {
        mean += lab::run_churn(openb, seed, policy).allocation / kChurnSeeds;
      }
      std::string& cell = cells.emplace_back(fmt::format("{:.2f}", mean));
      for (const lab::ChurnBaseline& baseline : baselines) {
        if (baseline.trace == trace && baseline.policy == policy.name) {
          cell += fmt::format(" ({:.2f})", baseline.allocation);
        }
      }
    }
    print_row(trace, cells);
  }
}

}  // namespace

int main() {
  const char* directory = std::getenv("GFLOW_LAB_DATA");
  if (directory == nullptr) {
    fmt::print(stderr,
               "placement_bench: GFLOW_LAB_DATA has to name the directory that holds openb\n");
    return 2;
  }
  const std::string data = directory;
  measure_speed(data);
  measure_inflation(data);
  measure_churn(data);
  return 0;
}
