// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "placement/policy.h"

/// What the published policies have in common: the scale of their scores, and the largest node of
/// the cluster they were made for, by which they measure all others.
namespace gflow::placement {

constexpr double kMaxPublished = 100;
constexpr double kLargestMilliCpus = 128'000;
constexpr double kLargestMilliGpus = 8'000;

/// Compute in thousandths of a GPU, as the publications count it.
constexpr double milli_gpus(std::int64_t parts) { return static_cast<double>(parts) / 10; }

/// Compute a demand asks for on one node.
constexpr std::int64_t asked_parts(const Demand& demand) {
  return std::int64_t{demand.gpus} * demand.share.parts;
}

}  // namespace gflow::placement
