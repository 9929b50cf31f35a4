// SPDX-License-Identifier: Apache-2.0
#include "core/time_slices.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace gflow {
namespace {

std::int64_t weight_of(const TimeSliceUser& taker) {
  return std::int64_t{std::clamp(taker.priority, 0, kMaxPriority)} + 1;
}

}  // namespace

std::vector<TimeSliceShare> time_slice_shares(const std::vector<TimeSliceUser>& takers) {
  std::int64_t sum = 0;
  for (const TimeSliceUser& taker : takers) sum += weight_of(taker);
  std::vector<TimeSliceShare> shares;
  std::vector<std::pair<std::int64_t, std::size_t>> cut;  // what rounding cut, negative; position
  std::int32_t left = takers.empty() ? 0 : Share::kWholeParts;
  for (const TimeSliceUser& taker : takers) {
    const std::int64_t exact = weight_of(taker) * Share::kWholeParts;
    const auto parts = static_cast<std::int32_t>(exact / sum);
    cut.emplace_back(-(exact % sum), shares.size());
    shares.push_back({taker.job, Share{parts}});
    left -= parts;
  }
  std::sort(cut.begin(), cut.end());
  for (const auto& [remainder, position] : cut) {
    if (left-- <= 0) break;
    shares[position].time += Share{1};
  }
  return shares;
}

}  // namespace gflow
