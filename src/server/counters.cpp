// SPDX-License-Identifier: Apache-2.0
#include "server/counters.h"

#include <algorithm>
#include <utility>

namespace gflow::server {
namespace {

constexpr std::array kWaits = {
    1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 43200.0, 86400.0, 259200.0, 604800.0};
constexpr std::array kPasses = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0};

}  // namespace

Histogram::Histogram(std::span<const double> bounds) {
  for (const double bound : bounds) buckets_.push_back({bound});
  buckets_.push_back({std::nullopt});
}

void Histogram::observe(double value, std::optional<Exemplar> exemplar) {
  const auto bucket = std::ranges::find_if(
      buckets_, [value](const Bucket& one) { return !one.upper || value <= *one.upper; });
  ++bucket->count;
  sum_ += value;
  if (exemplar) bucket->exemplar = std::move(exemplar);
}

double gpus_held(const JobSpec& spec) {
  return static_cast<double>(gpu_parts_of(spec.request)) / Share::kWholeParts;
}

Counters::Counters() : wait(kWaits), run_time(kWaits), pass(kPasses) {}

}  // namespace gflow::server
