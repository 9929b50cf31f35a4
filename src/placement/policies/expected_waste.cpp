// SPDX-License-Identifier: Apache-2.0
#include "placement/policies/expected_waste.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace gflow::placement {
namespace {

constexpr int kWhole = 100;  // percent

constexpr std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Makes probabilities of counts.
void normalise(std::vector<Offer>& offers) {
  double sum = 0;
  for (const Offer& offer : offers) sum += offer.probability;
  for (Offer& offer : offers) offer.probability /= sum;
}

}  // namespace

std::vector<Offer> offers_of(const Profile& profile) {
  constexpr std::int64_t kPercent = Share::kWholeParts / kWhole;
  std::map<std::pair<int, int>, std::int64_t> counts;
  for (const DemandClass& kind : profile.classes) {
    const Demand& demand = kind.demand;
    if (demand.gpus == 0 || demand.mode == GpuMode::TimeSlice) continue;
    const std::int32_t parts = demand.is_whole() ? Share::kWholeParts : demand.share.parts;
    const std::int64_t percent = std::clamp<std::int64_t>(divided_up(parts, kPercent), 1, kWhole);
    const std::int64_t cpus = divided_up(demand.milli_cpus, std::int64_t{1000} * demand.gpus);
    const std::int64_t counted = std::min<std::int64_t>(cpus, DeviceWaste::kMaxCpus);
    counts[{static_cast<int>(percent), static_cast<int>(counted)}] += kind.count;
  }
  std::vector<Offer> offers;
  for (const auto& [size, count] : counts) {
    offers.push_back({size.first, size.second, static_cast<double>(count)});
  }
  normalise(offers);
  return offers;
}

std::vector<Offer> fractions_of(std::span<const Offer> offers) {
  std::vector<Offer> fractions;
  for (const Offer& offer : offers) {
    if (offer.percent == kWhole) continue;
    if (fractions.empty() || fractions.back().percent != offer.percent) {
      fractions.push_back({offer.percent, 0, 0});
    }
    fractions.back().probability += offer.probability;
  }
  normalise(fractions);
  return fractions;
}

RemainderWaste::RemainderWaste(std::span<const Offer> fractions, int horizon) {
  for (int percent = 0; percent <= kWhole; ++percent) waste_.push_back(percent / 100.0);
  // From the largest remainder down, a remainder looks only at what is not yet renewed.
  for (int i = 0; i < horizon; ++i) {
    for (std::size_t r = kWhole - 1; r > 0; --r) {
      double saved = 0;
      for (const Offer& offer : fractions) {
        const auto size = static_cast<std::size_t>(offer.percent);
        if (size <= r) saved += offer.probability * std::max(0.0, waste_[r] - waste_[r - size]);
      }
      waste_[r] -= saved;
    }
  }
  waste_[kWhole] = 0;
}

namespace {

/// One more offer to devices with r of them free, whatever their CPUs; `saved` is only room.
void offer_to(std::vector<double>& waste,
              std::size_t r,
              std::size_t columns,
              std::span<const Offer> offers,
              std::vector<double>& saved) {
  double* row = waste.data() + r * columns;
  std::ranges::fill(saved, 0.0);
  for (const Offer& offer : offers) {
    const auto size = static_cast<std::size_t>(offer.percent);
    const auto cpus = static_cast<std::size_t>(offer.cpus);
    if (size > r) break;
    const double* taken = waste.data() + (r - size) * columns;
    for (std::size_t c = cpus; c < columns; ++c) {
      saved[c] += offer.probability * std::max(0.0, row[c] - taken[c - cpus]);
    }
  }
  for (std::size_t c = 0; c < columns; ++c) row[c] -= saved[c];
}

}  // namespace

DeviceWaste::DeviceWaste(std::span<const Offer> offers, const Rules& rules)
    : cpu_worth_(rules.cpu_worth) {
  std::vector<double> waste((kWhole + 1) * kColumns);
  for (std::size_t r = 0; r <= kWhole; ++r) {
    for (std::size_t c = 0; c < kColumns; ++c) {
      waste[r * kColumns + c] =
          static_cast<double>(r) / 100.0 - rules.cpu_worth * static_cast<double>(c);
    }
  }
  std::vector<double> at_short = waste;
  std::vector<double> saved(kColumns);
  for (int i = 1; i <= rules.long_horizon; ++i) {
    // From the largest remainder down, a row looks only at what is not yet renewed.
    for (std::size_t r = kWhole; r > 0; --r) offer_to(waste, r, kColumns, offers, saved);
    if (i == rules.short_horizon) at_short = waste;
  }
  for (std::size_t i = 0; i < waste.size(); ++i) waste[i] = (waste[i] + at_short[i]) / 2;
  waste_ = std::move(waste);
}

TenantWaste::TenantWaste(std::span<const Offer> fractions) {
  constexpr int kMaxRounds = 300;
  constexpr double kNear = 1e-5;
  for (int percent = 0; percent <= kWhole; ++percent) {
    waste_.insert(waste_.end(), kMaxJobs + 1, percent / 100.0 / kDiscount);
  }
  double moved = 1;
  for (int round = 0; round < kMaxRounds && moved >= kNear; ++round) {
    moved = 0;
    for (int percent = 0; percent <= kWhole; ++percent) {
      for (int jobs = 0; jobs <= kMaxJobs; ++jobs) {
        const double next = relaxed(fractions, percent, jobs);
        double& value = waste_[cell(percent, jobs)];
        moved = std::max(moved, std::fabs(next - value));
        value = next;
      }
    }
  }
}

double TenantWaste::after_one_left(int percent, int jobs) const {
  if (jobs == 1) return waste_[cell(kWhole, 0)];
  const double free = percent + static_cast<double>(kWhole - percent) / jobs;
  const int below = static_cast<int>(free);
  if (below == kWhole) return waste_[cell(kWhole, jobs - 1)];
  const double part = free - below;
  return waste_[cell(below, jobs - 1)] * (1 - part) + waste_[cell(below + 1, jobs - 1)] * part;
}

double TenantWaste::relaxed(std::span<const Offer> fractions, int percent, int jobs) const {
  const double now = waste_[cell(percent, jobs)];
  double offered = 0;
  double left = 1;  // of the probability
  for (const Offer& offer : fractions) {
    if (offer.percent > percent) break;
    const double taken = waste_[cell(percent - offer.percent, std::min(jobs + 1, kMaxJobs))];
    offered += offer.probability * std::min(now, taken);
    left -= offer.probability;
  }
  offered += left * now;
  double sum = percent / 100.0 + kOffers * offered;
  if (jobs > 0) sum += jobs * after_one_left(percent, jobs);
  return sum / (kOffers + jobs + kDiscount);
}

}  // namespace gflow::placement
