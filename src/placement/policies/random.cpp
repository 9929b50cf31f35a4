// SPDX-License-Identifier: Apache-2.0
// Random: any node that fits, each as likely, and there any device that fits. What other policies
// are compared with. The draw is made from the seed and the ledger's version, so that the same
// cluster gives the same answer however often it is asked.
#include <algorithm>
#include <cstdint>

#include "placement/draw.h"
#include "placement/policies/policies.h"

namespace gflow::placement {
namespace {

class Random final : public Policy {
 public:
  explicit Random(std::uint64_t seed) : seed_(seed) {}

  [[nodiscard]] Traits traits() const override { return {.draws = true}; }
  [[nodiscard]] Score score(const Question&) const override { return 0; }

  [[nodiscard]] std::vector<int> devices(const Question& question) const override {
    std::vector<int> devices;
    for (std::size_t i = 0; i < question.fits.size(); ++i) {
      if (question.fits[i] != 0) devices.push_back(static_cast<int>(i));
    }
    const auto wanted = static_cast<std::size_t>(question.demand.gpus);
    std::uint64_t drawn = drawn_number(~seed_, question.ledger.version());
    for (std::size_t i = 0; i < wanted; ++i) {
      std::swap(devices[i], devices[i + drawn % (devices.size() - i)]);
      drawn = drawn_number(drawn, i);
    }
    devices.resize(wanted);
    std::ranges::sort(devices);
    return devices;
  }

 private:
  std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<Policy> make_random(const PolicyOptions& options) {
  return std::make_unique<Random>(options.seed);
}

}  // namespace gflow::placement
