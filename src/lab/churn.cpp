// SPDX-License-Identifier: Apache-2.0
#include "lab/churn.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "lab/inflation.h"
#include "lab/rng.h"
#include "placement/placer.h"

namespace gflow::lab {
namespace {

struct Departure {
  double at = 0;
  std::size_t task = 0;
  placement::Placement placement;

  friend bool operator>(const Departure& a, const Departure& b) { return a.at > b.at; }
};

/// Allocation over time, from the end of the warm-up.
class Meter {
 public:
  explicit Meter(double begin) : begin_(begin), last_(begin) {}

  void advance(double now) {
    if (now <= last_) return;
    area_ += static_cast<double>(used_) * (now - last_);
    last_ = now;
  }
  void add(std::int64_t parts) { used_ += parts; }
  [[nodiscard]] double mean() const { return last_ > begin_ ? area_ / (last_ - begin_) : 0; }

 private:
  double begin_;
  double last_;
  double area_ = 0;
  std::int64_t used_ = 0;
};

class Churn {
 public:
  Churn(const Openb& openb,
        std::uint64_t seed,
        const placement::PolicyEntry& policy,
        const ChurnProtocol& protocol)
      : openb_(openb),
        protocol_(protocol),
        rng_(seed, kEvents),
        ledger_(openb_ledger(openb, draw_arrival_order(openb, seed).ranks)),
        placer_(policy.make({.seed = seed}), openb.profile(), seed),
        meter_(protocol.warm_up) {
    for (const placement::Demand& task : openb.tasks) demands_.push_back(ledger_.intern(task));
  }

  ChurnRun run() {
    std::int64_t parts = 0;
    for (const placement::Demand& task : openb_.tasks) parts += parts_of(task);
    const double mean_parts = static_cast<double>(parts) / static_cast<double>(demands_.size());
    const auto capacity = static_cast<double>(openb_.capacity());
    const double gap = mean_parts / (protocol_.load * capacity);
    double now = 0;
    for (int i = 0; i < protocol_.arrivals; ++i) {
      now += rng_.exponential(gap);
      const std::size_t task = rng_.below(static_cast<std::uint32_t>(demands_.size()));
      const double life = rng_.exponential(1);
      leave_until(now);
      arrive(now, task, life);
    }
    return {.allocation = 100 * meter_.mean() / capacity,
            .demand_accepted = 100 * accepted_parts_ / std::max(1.0, offered_parts_),
            .tasks_accepted = 100 * accepted_ / std::max(1.0, offered_)};
  }

 private:
  static constexpr std::uint64_t kEvents = 1;  // stream; that of the node order is another

  void leave_until(double now) {
    for (; !departures_.empty() && departures_.top().at <= now; departures_.pop()) {
      const Departure& gone = departures_.top();
      meter_.advance(gone.at);
      ledger_.give_back(demands_[gone.task], gone.placement);
      meter_.add(-parts_of(openb_.tasks[gone.task]));
      placer_.departed(ledger_);
    }
  }

  void arrive(double now, std::size_t task, double life) {
    meter_.advance(now);
    const std::int64_t parts = parts_of(openb_.tasks[task]);
    const bool measured = now > protocol_.warm_up;
    if (measured) {
      offered_ += 1;
      offered_parts_ += static_cast<double>(parts);
    }
    placer_.arrived(ledger_, demands_[task]);
    auto choice = placer_.choose(ledger_, demands_[task]);
    if (!choice) return;
    ledger_.take(demands_[task], choice->placements.front());
    meter_.add(parts);
    departures_.push(
        {.at = now + life, .task = task, .placement = std::move(choice->placements.front())});
    if (measured) {
      accepted_ += 1;
      accepted_parts_ += static_cast<double>(parts);
    }
  }

  const Openb& openb_;
  const ChurnProtocol& protocol_;
  Rng rng_;
  placement::Ledger ledger_;
  placement::Placer placer_;
  Meter meter_;
  std::vector<placement::DemandIndex> demands_;  // by row of the trace
  std::priority_queue<Departure, std::vector<Departure>, std::greater<>> departures_;
  double offered_ = 0;
  double offered_parts_ = 0;
  double accepted_ = 0;
  double accepted_parts_ = 0;
};

}  // namespace

ChurnRun run_churn(const Openb& openb,
                   std::uint64_t seed,
                   const placement::PolicyEntry& policy,
                   const ChurnProtocol& protocol) {
  return Churn(openb, seed, policy, protocol).run();
}

}  // namespace gflow::lab
