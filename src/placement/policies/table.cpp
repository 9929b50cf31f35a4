// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "placement/policies/policies.h"

namespace gflow::placement {
namespace {

constexpr std::array kPolicies = {
    PolicyEntry{"gflow", "leaves what expected jobs will use; learns who is scarce", make_gflow},
    PolicyEntry{"fgd", "leaves the least compute that typical jobs cannot use", make_fgd},
    PolicyEntry{"spread", "emptiest nodes first", make_spread},
    PolicyEntry{"pack", "fullest nodes first", make_pack},
    PolicyEntry{"balanced", "GPUs, their memory and CPUs run out together", make_balanced},
    PolicyEntry{"best-fit", "least CPUs and GPU compute left over", make_best_fit},
    PolicyEntry{"dot-prod", "least alike to what is asked (Tetris)", make_dot_prod},
    PolicyEntry{"gpu-clustering", "jobs of a kind together (Gandiva)", make_gpu_clustering},
    PolicyEntry{"gpu-packing", "devices in use before idle ones", make_gpu_packing},
    PolicyEntry{"random", "any node that fits", make_random},
};

}  // namespace

std::span<const PolicyEntry> policies() { return kPolicies; }

const PolicyEntry* find_policy(std::string_view name) {
  const auto found = std::ranges::find(policies(), name, &PolicyEntry::name);
  return found == policies().end() ? nullptr : &*found;
}

}  // namespace gflow::placement
