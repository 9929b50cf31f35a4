// SPDX-License-Identifier: Apache-2.0
// GpuPacking, after MLaaS in the wild (Weng et al., NSDI'22), as the program of Weng et al. (USENIX
// ATC'23) does it.
//
// Prefers devices in use (50 to 100, less what they have free), then idle devices of a node in use
// (33 to 50, less how many are taken), then empty nodes (up to 33, less how many devices they
// have). Jobs without devices: every node is as good. Devices: those with the least left that fit.
// Ties go to the first node.
#include <algorithm>
#include <cstdint>

#include "placement/policies/policies.h"

namespace gflow::placement {
namespace {

class GpuPacking final : public Policy {
 public:
  [[nodiscard]] Score score(const Question& question) const override {
    constexpr Score kMax = 100;
    const NodeView& node = question.node;
    if (question.demand.gpus == 0) return 0;
    if (node.idle == static_cast<int>(node.free.size())) {
      return std::max(kMax / 3 - node.idle, node.idle);
    }
    int idle = 0;
    Score percent_free = 0;
    for (const int device : least_free(question)) {
      const std::int32_t parts = node.free[static_cast<std::size_t>(device)];
      if (parts == Share::kWholeParts) ++idle;
      percent_free += parts / Share::percent(1).parts;
    }
    if (idle > 0) return std::max(kMax / 2 - idle, kMax / 3);
    return std::max(kMax - percent_free / 10, kMax / 2);
  }
};

}  // namespace

std::unique_ptr<Policy> make_gpu_packing(const PolicyOptions&) {
  return std::make_unique<GpuPacking>();
}

}  // namespace gflow::placement
