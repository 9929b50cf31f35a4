// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "placement/ledger.h"
#include "placement/profile.h"

namespace gflow::placement {

/// How short devices of each model would be, by model: what jobs that may not go everywhere ask of
/// it, in parts of what there is of it, if jobs came until they ask for as much as there is in all.
/// A kind of job that may go to several models is spread so that the fullest of them is as little
/// full as can be. Jobs that may go to any model count nowhere.
[[nodiscard]] std::vector<double> model_scarcity(const Ledger& ledger, const Profile& profile);

/// CPUs that jobs ask for by the time they ask for all devices, in parts of the CPUs there are. 0
/// if nobody asks for devices, or there are none, or no CPUs are known of.
[[nodiscard]] double cpu_scarcity(const Ledger& ledger, const Profile& profile);

}  // namespace gflow::placement
