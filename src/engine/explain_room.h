// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/index.h"

/// Inside of the engine: what a job lacks that has no room now. Not for other modules.
namespace gflow::engine {

/// The node's name where there are several to tell apart.
[[nodiscard]] std::string node_shown(const Index& index, placement::NodeIndex node);

/// What the node that comes closest to having room lacks, and who has it; nothing where there is
/// room, or the ledger does not know the demand.
void explain_resources(const Index& index, const JobSpec& spec, Now now, std::vector<Blocker>& why);

/// What of it explain_resources() names first, without who has it; nothing where there is room.
[[nodiscard]] std::optional<BlockerKind> first_lack(const Index& index,
                                                    placement::DemandIndex demand,
                                                    const Request& asks);

}  // namespace gflow::engine
