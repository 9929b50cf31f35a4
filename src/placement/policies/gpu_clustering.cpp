// SPDX-License-Identifier: Apache-2.0
// GpuClustering, after Gandiva (Xiao et al., OSDI'18), as the program of Weng et al. (USENIX
// ATC'23) does it.
//
// Keeps jobs of a kind together; kinds are parts of a device, and each number of whole devices.
// Prefers nodes with only this kind (75), then this kind among others (50), then empty ones (25),
// then those with other kinds only (0), and among these the fuller: up to 25 for compute in use, in
// proportion to the largest node of their cluster. Jobs without devices: every node is as good.
// Devices: those with the least left that fit. Ties go to the first node.
#include <algorithm>
#include <cstdint>

#include "placement/policies/policies.h"
#include "placement/policies/published.h"

namespace gflow::placement {
namespace {

/// 0 for a part of a device, else how many devices.
int kind_of(const Demand& demand) { return demand.mode == GpuMode::Fraction ? 0 : demand.gpus; }

class GpuClustering final : public Policy {
 public:
  [[nodiscard]] Traits traits() const override { return {.by_view = false}; }

  [[nodiscard]] Score score(const Question& question) const override {
    if (question.demand.gpus == 0) return 0;
    bool same = false;
    bool others = false;
    for (const Hold& hold : question.ledger.holds(question.node.index)) {
      const Demand& held = question.ledger.demand(hold.demand);
      if (held.gpus == 0) continue;
      (kind_of(held) == kind_of(question.demand) ? same : others) = true;
    }
    constexpr std::int64_t kStep = 25;
    constexpr std::int64_t kLargest = std::int64_t{8} * Share::kWholeParts;
    const std::int64_t used = std::max<std::int64_t>(0, kLargest - question.node.free_parts);
    const std::int64_t steps = same ? (others ? 2 : 3) : (others ? 0 : 1);
    return static_cast<Score>(kStep * used / kLargest + kStep * steps);
  }
};

}  // namespace

std::unique_ptr<Policy> make_gpu_clustering(const PolicyOptions&) {
  return std::make_unique<GpuClustering>();
}

}  // namespace gflow::placement
