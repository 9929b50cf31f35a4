// SPDX-License-Identifier: Apache-2.0
// BestFit, as the program of Weng et al. (USENIX ATC'23) does it.
//
// Prefers the node that would have the least CPUs and GPU compute left, each in proportion to the
// largest node of their cluster and of equal weight: 100 * (1 - CPUs / 2 - GPU / 2), cut to an
// integer. Devices: those with the least left that fit. Ties go to the first node.
#include "placement/policies/policies.h"
#include "placement/policies/published.h"

namespace gflow::placement {
namespace {

class BestFit final : public Policy {
 public:
  [[nodiscard]] Score score(const Question& question) const override {
    const NodeView& node = question.node;
    const Demand& demand = question.demand;
    const auto cpus = static_cast<double>(node.milli_cpus_free - demand.milli_cpus);
    const auto gpu = milli_gpus(node.free_parts) - milli_gpus(asked_parts(demand));
    double left = 0;
    left += cpus / kLargestMilliCpus * 0.5;
    left += gpu / kLargestMilliGpus * 0.5;
    return static_cast<Score>((1.0 - left) * kMaxPublished);
  }
};

}  // namespace

std::unique_ptr<Policy> make_best_fit(const PolicyOptions&) { return std::make_unique<BestFit>(); }

}  // namespace gflow::placement
