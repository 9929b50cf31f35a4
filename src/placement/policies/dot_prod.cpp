// SPDX-License-Identifier: Apache-2.0
// DotProd, after Tetris (Grandl et al., SIGCOMM'14), as the program of Weng et al. (USENIX ATC'23)
// does it.
//
// Prefers the node whose free CPUs and GPU compute have the smallest dot product with what is asked
// for, each in proportion to the largest node of their cluster: 100 * (1 - product / 2), cut to an
// integer. Devices: those with the least left that fit. Ties go to the first node.
#include "placement/policies/policies.h"
#include "placement/policies/published.h"

namespace gflow::placement {
namespace {

class DotProd final : public Policy {
 public:
  [[nodiscard]] Score score(const Question& question) const override {
    const NodeView& node = question.node;
    const Demand& demand = question.demand;
    double product = 0;
    product += (static_cast<double>(node.milli_cpus_free) / kLargestMilliCpus) *
               (static_cast<double>(demand.milli_cpus) / kLargestMilliCpus);
    product += (milli_gpus(node.free_parts) / kLargestMilliGpus) *
               (milli_gpus(asked_parts(demand)) / kLargestMilliGpus);
    return static_cast<Score>(kMaxPublished * (1 - product / 2));
  }
};

}  // namespace

std::unique_ptr<Policy> make_dot_prod(const PolicyOptions&) { return std::make_unique<DotProd>(); }

}  // namespace gflow::placement
