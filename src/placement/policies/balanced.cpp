// SPDX-License-Identifier: Apache-2.0
// BALANCED: between spread and pack. GPUs, their memory and CPUs of a node are to run out together,
// so that none is left over for want of another.
//
// Each utilisation counts by how near it would be to the mean of the three. Fragmentation counts by
// what is not fragmented. Devices: those with the least left that fit. Ties go to the first node.
#include <cstdlib>

#include "placement/policies/policies.h"
#include "placement/policies/utilisation.h"

namespace gflow::placement {
namespace {

class Balanced final : public UtilisationPolicy {
 public:
  using UtilisationPolicy::UtilisationPolicy;

 private:
  [[nodiscard]] Merits merits(const Utilisation& with_job) const override {
    const int mean = (with_job.gpu + with_job.memory + with_job.cpu) / 3;
    return {.gpu = kPermille - std::abs(with_job.gpu - mean),
            .memory = kPermille - std::abs(with_job.memory - mean),
            .cpu = kPermille - std::abs(with_job.cpu - mean),
            .fragmentation = kPermille - with_job.fragmentation};
  }
};

}  // namespace

std::unique_ptr<Policy> make_balanced(const PolicyOptions& options) {
  return std::make_unique<Balanced>(options);
}

}  // namespace gflow::placement
