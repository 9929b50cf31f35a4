// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "placement/policies/policies.h"

namespace gflow::placement {
namespace {

constexpr std::array kPolicies = {
    PolicyEntry{"fgd", "leaves the least compute that typical jobs cannot use", make_fgd},
};

}  // namespace

std::span<const PolicyEntry> policies() { return kPolicies; }

}  // namespace gflow::placement
