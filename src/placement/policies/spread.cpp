// SPDX-License-Identifier: Apache-2.0
// SPREAD: jobs far from each other, so that they share as little as possible and the loss of a node
// hits few.
//
// Each utilisation counts by what is left: the emptier the node would be, the better. Fragmentation
// counts by what is not fragmented. Devices: those with the most left. Ties go to the first node.
#include <algorithm>
#include <cstdint>

#include "placement/policies/policies.h"
#include "placement/policies/utilisation.h"

namespace gflow::placement {
namespace {

class Spread final : public UtilisationPolicy {
 public:
  using UtilisationPolicy::UtilisationPolicy;

  [[nodiscard]] std::vector<int> devices(const Question& question) const override {
    std::vector<int> devices;
    for (std::size_t i = 0; i < question.fits.size(); ++i) {
      if (question.fits[i] != 0) devices.push_back(static_cast<int>(i));
    }
    const std::vector<std::int32_t>& free = question.node.free;
    std::ranges::stable_sort(
        devices, std::greater{}, [&free](int i) { return free[static_cast<std::size_t>(i)]; });
    devices.resize(static_cast<std::size_t>(question.demand.gpus));
    std::ranges::sort(devices);
    return devices;
  }

 private:
  [[nodiscard]] Merits merits(const Utilisation& with_job) const override {
    return {.gpu = kPermille - with_job.gpu,
            .memory = kPermille - with_job.memory,
            .cpu = kPermille - with_job.cpu,
            .fragmentation = kPermille - with_job.fragmentation};
  }
};

}  // namespace

std::unique_ptr<Policy> make_spread(const PolicyOptions& options) {
  return std::make_unique<Spread>(options);
}

}  // namespace gflow::placement
