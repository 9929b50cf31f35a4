// SPDX-License-Identifier: Apache-2.0
#include "lab/inflation.h"

#include <cmath>

#include "placement/placer.h"

namespace gflow::lab {
namespace {

/// Means over tasks, by percent arrived.
class CurveMeter {
 public:
  explicit CurveMeter(std::int64_t capacity) : capacity_(static_cast<double>(capacity)) {}

  void note(std::int64_t arrived, std::int64_t used) {
    const double percent = std::nearbyint(100.0 * static_cast<double>(arrived) / capacity_);
    if (percent > kMaxArrivedPercent) return;
    Point& point = points_[static_cast<std::size_t>(percent)];
    point.sum += std::round(10'000.0 * static_cast<double>(used) / capacity_) / 100;
    ++point.count;
  }
  /// A point nothing arrived at has the value of the one before it.
  [[nodiscard]] AllocationCurve curve() const {
    AllocationCurve curve{};
    double last = 0;
    for (std::size_t i = 0; i < curve.size(); ++i) {
      if (points_[i].count > 0) last = points_[i].sum / points_[i].count;
      curve[i] = last;
    }
    return curve;
  }

 private:
  struct Point {
    double sum = 0;
    int count = 0;
  };
  double capacity_;
  std::array<Point, kMaxArrivedPercent + 1> points_{};
};

}  // namespace

placement::Ledger openb_ledger(const Openb& openb, const std::vector<std::int32_t>& ranks) {
  std::vector<std::size_t> rows(ranks.size());
  for (std::size_t row = 0; row < ranks.size(); ++row) {
    rows[static_cast<std::size_t>(ranks[row])] = row;
  }
  placement::Ledger ledger;
  for (const std::size_t row : rows) ledger.put(openb.nodes[row]);
  return ledger;
}

InflationRun run_inflation(const Openb& openb,
                           const ArrivalOrder& order,
                           const placement::PolicyEntry& policy,
                           const placement::PolicyOptions& options) {
  placement::Ledger ledger = openb_ledger(openb, order.ranks);
  placement::Placer placer(policy.make(options), openb.profile(), options.seed);
  std::vector<placement::DemandIndex> demands;
  for (const placement::Demand& task : openb.tasks) demands.push_back(ledger.intern(task));
  InflationRun run;
  CurveMeter meter(openb.capacity());
  std::int64_t arrived = 0;
  std::int64_t used = 0;
  for (const std::int32_t row : order.tasks) {
    const auto task = static_cast<std::size_t>(row);
    const std::int64_t parts = parts_of(openb.tasks[task]);
    arrived += parts;
    placer.arrived(ledger, demands[task]);
    if (const auto choice = placer.choose(ledger, demands[task])) {
      ledger.take(demands[task], choice->placements.front());
      used += parts;
      ++run.placed;
    } else {
      ++run.lost;
    }
    meter.note(arrived, used);
  }
  run.curve = meter.curve();
  return run;
}

}  // namespace gflow::lab
