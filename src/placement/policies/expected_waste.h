// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "placement/profile.h"

namespace gflow::placement {

/// What jobs of one kind ask of each device, in the units of the tables below: hundredths of a
/// device and whole CPUs, both rounded up.
struct Offer {
  int percent = 0;
  int cpus = 0;
  double probability = 0;

  friend bool operator==(const Offer&, const Offer&) = default;
};

/// The kinds of GPU jobs, equal ones together, by size; probabilities add up to 1. Jobs that take
/// turns on a device are left out: they leave no remainder.
[[nodiscard]] std::vector<Offer> offers_of(const Profile& profile);
/// Those of less than a device, probabilities adding up to 1 again.
[[nodiscard]] std::vector<Offer> fractions_of(std::span<const Offer> offers);

/// Expected waste of what is left of a device, if it is offered jobs one after another and may
/// refuse any of them, always wasting the least: w_0(r) = r, and
/// w_t(r) = sum over jobs of p * min(w_(t-1)(r), w_(t-1)(r - size)).
/// A whole device counts as no remainder at all. In devices.
class RemainderWaste {
 public:
  RemainderWaste() = default;
  RemainderWaste(std::span<const Offer> fractions, int horizon);

  /// REQUIRES: 0 <= percent <= 100.
  [[nodiscard]] double at(int percent) const { return waste_[static_cast<std::size_t>(percent)]; }

 private:
  std::vector<double> waste_;  // by percent
};

/// The same for a device with CPUs of its own, offered jobs of all sizes: those that want more CPUs
/// than are left cannot be taken. A CPU left over at the end is worth something by itself.
class DeviceWaste {
 public:
  struct Rules {
    int long_horizon = 1;  ///< offers; the waste is the mean of that for either horizon
    int short_horizon = 1;
    double cpu_worth = 0;  ///< in devices

    friend bool operator==(const Rules&, const Rules&) = default;
  };

  DeviceWaste() = default;
  DeviceWaste(std::span<const Offer> offers, const Rules& rules);

  /// REQUIRES: 0 <= percent <= 100, cpus >= 0.
  [[nodiscard]] double at(int percent, double cpus) const {
    const double* row = waste_.data() + static_cast<std::size_t>(percent) * kColumns;
    if (cpus >= kMaxCpus) return row[kMaxCpus] - cpu_worth_ * (cpus - kMaxCpus);
    const auto whole = static_cast<std::size_t>(cpus);
    const double part = cpus - static_cast<double>(whole);
    return row[whole] * (1 - part) + row[whole + 1] * part;
  }

  static constexpr int kMaxCpus = 64;  ///< per device; more make no difference to what fits

 private:
  static constexpr std::size_t kColumns = kMaxCpus + 1;

  double cpu_worth_ = 0;
  std::vector<double> waste_;  // by percent, then CPUs
};

/// Idle time of a device with jobs on it that will leave: r free and k jobs, each of which leaves
/// after an exponential time of mean 1 and then gives back its k-th part of what is in use.
/// Fractions are offered all the time and may be refused. The future is discounted. In devices
/// times lifetimes; the fixed point of
/// v(r, k) = (r + offers * E min(v(r, k), v(r - size, k + 1)) + k * v(r + (1 - r) / k, k - 1))
///           / (offers + k + discount).
class TenantWaste {
 public:
  TenantWaste() = default;
  explicit TenantWaste(std::span<const Offer> fractions);

  /// REQUIRES: 0 <= percent <= 100, jobs >= 0.
  [[nodiscard]] double at(int percent, int jobs) const {
    return waste_[cell(percent, jobs < kMaxJobs ? jobs : kMaxJobs)];
  }

 private:
  static constexpr int kMaxJobs = 8;     // more are like so many
  static constexpr double kOffers = 20;  // per lifetime
  static constexpr double kDiscount = 0.3;

  [[nodiscard]] static constexpr std::size_t cell(int percent, int jobs) {
    return static_cast<std::size_t>(percent) * (kMaxJobs + 1) + static_cast<std::size_t>(jobs);
  }
  [[nodiscard]] double after_one_left(int percent, int jobs) const;
  [[nodiscard]] double relaxed(std::span<const Offer> fractions, int percent, int jobs) const;

  std::vector<double> waste_;
};

}  // namespace gflow::placement
