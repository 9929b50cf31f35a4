// SPDX-License-Identifier: Apache-2.0
// gflow's own policy: leave every node such that what is left will be used.
//
// Assumes that the profile tells what is going to be asked for. A node as it stands has an expected
// waste, in devices: the sum over its devices of what tables expect to be wasted of the remainder
// (expected_waste.h), the CPUs left being thought of as spread over devices by what is free of
// each. Of the nodes a job fits on it takes the one whose waste it raises least, after
//  - a price for models that jobs bound to them are short of (scarcity.h), by the devices asked,
//  - a little for CPUs left, so that leftovers are used up before anything is opened.
// Ties go to the first node, inside a node to the device with least left, then the lowest.
//
// Where jobs leave, holes come back and what is lost is mostly whole nodes for jobs of many
// devices. So from the time departures reach an eighth of arrivals, the waste also counts whose
// holes come back when (TenantWaste), idle devices are kept together, and small nodes go first.
//
// Sources: the waste of a remainder under refusal is a finite-horizon optimal stopping recursion,
// the bid prices of revenue management (Talluri and van Ryzin, Management Science 44, 1998) with
// waste for revenue; looking at the mix of what will be asked is from Weng et al., USENIX ATC'23.
// Weights were found by search on random arrival orders of the public openb traces
// (docs/design/0004-placement-policy.md).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "placement/policies/expected_waste.h"
#include "placement/policies/policies.h"
#include "placement/policies/scarcity.h"

namespace gflow::placement {
namespace {

struct Weights {
  int long_horizon;  // of DeviceWaste, whose weight is 1
  int short_horizon;
  double cpu_worth;         // in devices, whatever the scarcity of CPUs
  double scarce_cpu_worth;  // more of it for each 1 of scarcity beyond kEnoughCpus
  double remainder;         // of RemainderWaste
  int remainder_horizon;
  double tenant;     // of TenantWaste
  double together;   // worth of 8 idle devices on one node; of fewer it falls by the cube
  double node_size;  // for each device of the node
  double scarcity;   // for each device asked, times the power of the model's scarcity
  int scarcity_power;
  double cpu_left;          // for each CPU free on the node, for a job with devices
  double cpu_left_without;  // the same for a job without
};

/// Nothing leaves: all that counts is how well everything fills in the end.
constexpr Weights kFilling = {.long_horizon = 200,
                              .short_horizon = 37,
                              .cpu_worth = 0,
                              .scarce_cpu_worth = 0.4,
                              .remainder = 3,
                              .remainder_horizon = 75,
                              .tenant = 0,
                              .together = 0,
                              .node_size = 0,
                              .scarcity = 0.075,
                              .scarcity_power = 8,
                              .cpu_left = 0.000'01,
                              .cpu_left_without = 0.000'075};
/// Jobs come and go.
constexpr Weights kTurningOver = {.long_horizon = 60,
                                  .short_horizon = 60,
                                  .cpu_worth = 0.05,
                                  .scarce_cpu_worth = 0,
                                  .remainder = 1,
                                  .remainder_horizon = 6,
                                  .tenant = 3,
                                  .together = 0.2,
                                  .node_size = 0.006,
                                  .scarcity = 0.6,
                                  .scarcity_power = 2,
                                  .cpu_left = 0.000'4,
                                  .cpu_left_without = 0.000'3};

/// Beyond this, jobs run out of CPUs before devices, and horizons shrink: who refuses a job now may
/// have no CPUs for a better one.
constexpr double kEnoughCpus = 0.92;
constexpr double kShrinking = 86;
constexpr double kMicro = 1e6;  // of a score in one device
constexpr std::int32_t kPercent = Share::kWholeParts / 100;

std::int64_t micro_of(double devices) { return std::llround(devices * kMicro); }

double power(double base, int exponent) {
  double product = 1;
  for (int i = 0; i < exponent; ++i) product *= base;
  return product;
}

int shrunk(int horizon, double excess) {
  return std::max(1, static_cast<int>(horizon / (1 + kShrinking * excess)));
}

/// What is left of a device.
struct Left {
  std::int32_t parts = 0;
  int jobs = 0;

  friend bool operator==(const Left&, const Left&) = default;
};

int percent_of(const Left& left) {
  return std::clamp(left.parts, 0, Share::kWholeParts) / kPercent;
}

class Gflow final : public Policy {
 public:
  void prepare(const Setting& setting) override;
  [[nodiscard]] bool observe(const Setting& setting) override;
  [[nodiscard]] std::int64_t worth(const Ledger& ledger, const NodeView& node) const override;
  [[nodiscard]] Score score(const Question& question) const override;
  [[nodiscard]] std::vector<int> devices(const Question& question) const override;
  [[nodiscard]] std::vector<Term> explain(const Question& question) const override;

 private:
  /// What tables were made from: the same again need not be made again.
  struct Made {
    std::vector<Offer> offers;
    double excess = 0;  // scarcity of CPUs beyond kEnoughCpus
    bool turning_over = false;

    friend bool operator==(const Made&, const Made&) = default;
  };

  template <typename LeftAt>
  [[nodiscard]] double waste(std::int64_t milli_cpus,
                             std::size_t devices,
                             const LeftAt& left_at) const;
  [[nodiscard]] double waste_after_one(const Question& question, std::size_t device) const;
  [[nodiscard]] double waste_after_many(const Question& question, std::span<const int> taken) const;
  [[nodiscard]] double waste_after_whole(const Question& question) const;
  [[nodiscard]] std::pair<double, int> best_part(const Question& question) const;
  [[nodiscard]] double waste_after(const Question& question) const;

  [[nodiscard]] double price_of_model(const Question& question) const;
  [[nodiscard]] double price_of_size(const Question& question) const;
  [[nodiscard]] double price_of_cpus(const Question& question) const;

  bool turning_over_ = false;
  const Weights* weights_ = &kFilling;
  std::optional<Made> made_;
  RemainderWaste remainder_;
  DeviceWaste device_;
  TenantWaste tenant_;
  std::vector<double> model_prices_;  // by model, for one device
  double cpu_worth_ = 0;
};

Left left_of(const Question& question, std::size_t device) {
  return {.parts = question.node.free[device],
          .jobs = question.ledger.state(question.node.index).devices[device].users};
}

bool Gflow::observe(const Setting& setting) {
  const Traffic& traffic = setting.traffic;
  const std::int64_t multiple = turning_over_ ? 16 : 8;  // so that it does not swing
  const bool turns_over =
      traffic.departures > 0 && traffic.departures * multiple >= traffic.arrivals;
  if (turns_over == turning_over_) return false;
  turning_over_ = turns_over;
  return true;
}

void Gflow::prepare(const Setting& setting) {
  weights_ = turning_over_ ? &kTurningOver : &kFilling;
  model_prices_ = model_scarcity(setting.ledger, setting.profile);
  for (double& price : model_prices_) {
    price = weights_->scarcity * power(price, weights_->scarcity_power);
  }
  const double scarcity = cpu_scarcity(setting.ledger, setting.profile);
  Made made{.offers = offers_of(setting.profile),
            .excess = std::max(0.0, scarcity - kEnoughCpus),
            .turning_over = turning_over_};
  if (made_ == made) return;
  cpu_worth_ = weights_->cpu_worth + weights_->scarce_cpu_worth * made.excess;
  device_ = DeviceWaste(made.offers,
                        {.long_horizon = shrunk(weights_->long_horizon, made.excess),
                         .short_horizon = shrunk(weights_->short_horizon, made.excess),
                         .cpu_worth = cpu_worth_});
  const std::vector<Offer> fractions = fractions_of(made.offers);
  remainder_ = RemainderWaste(fractions, weights_->remainder_horizon);
  tenant_ = weights_->tenant > 0 ? TenantWaste(fractions) : TenantWaste();
  made_ = std::move(made);
}

/// Expected waste of a node with so many CPUs free and devices as told.
template <typename LeftAt>
double Gflow::waste(std::int64_t milli_cpus, std::size_t devices, const LeftAt& left_at) const {
  int percent_in_all = 0;
  int idle = 0;
  double remainders = 0;
  double tenants = 0;
  for (std::size_t i = 0; i < devices; ++i) {
    const Left left = left_at(i);
    const int percent = percent_of(left);
    percent_in_all += percent;
    if (left.jobs == 0 && left.parts == Share::kWholeParts) ++idle;
    remainders += remainder_.at(percent);
    if (weights_->tenant > 0) tenants += tenant_.at(percent, left.jobs);
  }
  double sum = weights_->remainder * remainders + weights_->tenant * tenants -
               weights_->together * power(idle / 8.0, 3);
  const double cpus = static_cast<double>(std::max<std::int64_t>(milli_cpus, 0)) / 1000;
  if (percent_in_all == 0) return sum - cpu_worth_ * cpus;
  const double cpus_per_percent = cpus / percent_in_all;
  for (std::size_t i = 0; i < devices; ++i) {
    const int percent = percent_of(left_at(i));
    if (percent > 0) sum += device_.at(percent, cpus_per_percent * percent);
  }
  return sum;
}

std::int64_t Gflow::worth(const Ledger& ledger, const NodeView& node) const {
  const std::vector<DeviceState>& devices = ledger.state(node.index).devices;
  return micro_of(waste(node.milli_cpus_free, devices.size(), [&](std::size_t i) {
    return Left{.parts = node.free[i], .jobs = devices[i].users};
  }));
}

double Gflow::waste_after_one(const Question& question, std::size_t device) const {
  const std::int64_t cpus = question.node.milli_cpus_free - question.demand.milli_cpus;
  return waste(cpus, question.node.free.size(), [&](std::size_t i) {
    Left left = left_of(question, i);
    if (i == device) {
      left.parts -= question.demand.share.parts;
      ++left.jobs;
    }
    return left;
  });
}

double Gflow::waste_after_many(const Question& question, std::span<const int> taken) const {
  const std::int64_t cpus = question.node.milli_cpus_free - question.demand.milli_cpus;
  const std::vector<std::int32_t> free = free_after(question, taken);
  return waste(cpus, free.size(), [&](std::size_t i) {
    const bool is_taken = std::ranges::find(taken, static_cast<int>(i)) != taken.end();
    return Left{.parts = free[i], .jobs = left_of(question, i).jobs + (is_taken ? 1 : 0)};
  });
}

/// Idle devices are alike, so that it does not matter which are taken.
double Gflow::waste_after_whole(const Question& question) const {
  std::size_t end = 0;  // of those taken
  for (int found = 0; found < question.demand.gpus; ++end) found += question.fits[end];
  const std::int64_t cpus = question.node.milli_cpus_free - question.demand.milli_cpus;
  return waste(cpus, question.node.free.size(), [&](std::size_t i) {
    if (i < end && question.fits[i] != 0) return Left{.parts = 0, .jobs = 1};
    return left_of(question, i);
  });
}

/// The device to take a part of, and the waste after that.
std::pair<double, int> Gflow::best_part(const Question& question) const {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::pair<double, int> best{0, 0};
  Left best_left;
  for (std::size_t i = 0; i < question.fits.size(); ++i) {
    if (question.fits[i] == 0) continue;
    const Left left = left_of(question, i);
    bool tried = false;
    for (std::size_t j = 0; j < i && !tried; ++j) {
      tried = question.fits[j] != 0 && left_of(question, j) == left;
    }
    if (tried) continue;
    const double after = waste_after_one(question, i);
    const std::int64_t micro = micro_of(after);
    if (micro > least || (micro == least && left.parts >= best_left.parts)) continue;
    least = micro;
    best = {after, static_cast<int>(i)};
    best_left = left;
  }
  return best;
}

double Gflow::waste_after(const Question& question) const {
  if (question.demand.gpus == 0) return waste_after_many(question, {});
  if (question.demand.mode == GpuMode::Whole) return waste_after_whole(question);
  if (question.demand.is_part_of_one()) return best_part(question).first;
  return waste_after_many(question, least_free(question));
}

double Gflow::price_of_model(const Question& question) const {
  const Demand& demand = question.demand;
  if (demand.gpus == 0) return 0;
  const auto first = std::ranges::find(question.fits, 1) - question.fits.begin();
  const ModelIndex model =
      question.ledger.state(question.node.index).devices[static_cast<std::size_t>(first)].model;
  const std::int32_t parts =
      demand.mode == GpuMode::Fraction ? demand.share.parts : Share::kWholeParts;
  return model_prices_[static_cast<std::size_t>(model)] * demand.gpus * parts / Share::kWholeParts;
}

double Gflow::price_of_size(const Question& question) const {
  return weights_->node_size * static_cast<double>(question.node.free.size());
}

double Gflow::price_of_cpus(const Question& question) const {
  const double price = question.demand.gpus > 0 ? weights_->cpu_left : weights_->cpu_left_without;
  return price * static_cast<double>(question.node.milli_cpus_free) / 1000;
}

Score Gflow::score(const Question& question) const {
  const double cost = waste_after(question) + price_of_model(question) + price_of_size(question) +
                      price_of_cpus(question);
  constexpr std::int64_t kLeast = kNoScore + 1;
  constexpr std::int64_t kMax = std::numeric_limits<Score>::max();
  return static_cast<Score>(std::clamp(question.node.worth - micro_of(cost), kLeast, kMax));
}

std::vector<int> Gflow::devices(const Question& question) const {
  if (question.demand.is_part_of_one()) return {best_part(question).second};
  return least_free(question);
}

std::vector<Term> Gflow::explain(const Question& question) const {
  const double before = static_cast<double>(question.node.worth) / kMicro;
  return {{.name = "expected waste removed, GPUs",
           .weight = kMicro,
           .value = before - waste_after(question)},
          {.name = "scarce model, GPUs", .weight = -kMicro, .value = price_of_model(question)},
          {.name = "size of the node, GPUs", .weight = -kMicro, .value = price_of_size(question)},
          {.name = "CPUs left, GPUs", .weight = -kMicro, .value = price_of_cpus(question)}};
}

}  // namespace

std::unique_ptr<Policy> make_gflow(const PolicyOptions&) { return std::make_unique<Gflow>(); }

}  // namespace gflow::placement
