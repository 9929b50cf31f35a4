// SPDX-License-Identifier: Apache-2.0
// PACK: few nodes, well used, so that others stay empty for large jobs or can be switched off.
//
// Each utilisation counts as it is: the fuller the node would be, the better. Fragmentation counts
// by what is not fragmented. Devices: those with the least left that fit. Ties go to the first
// node.
#include "placement/policies/policies.h"
#include "placement/policies/utilisation.h"

namespace gflow::placement {
namespace {

class Pack final : public UtilisationPolicy {
 public:
  using UtilisationPolicy::UtilisationPolicy;

 private:
  [[nodiscard]] Merits merits(const Utilisation& with_job) const override {
    return {.gpu = with_job.gpu,
            .memory = with_job.memory,
            .cpu = with_job.cpu,
            .fragmentation = kPermille - with_job.fragmentation};
  }
};

}  // namespace

std::unique_ptr<Policy> make_pack(const PolicyOptions& options) {
  return std::make_unique<Pack>(options);
}

}  // namespace gflow::placement
